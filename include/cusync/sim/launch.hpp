// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/gate.hpp> // block_footprint
#include <cusync/tile.hpp> // u32, u64

#include <limits> // numeric_limits
#include <vector> // vector

namespace cusync::sim {

inline constexpr u32 no_id = std::numeric_limits<u32>::max();

/// What a block does next, as its engine tells the scheduler.
struct action {
  enum class kind {
    elapse,        ///< Goes on after `ns`.
    wait,          ///< Goes on once `semaphore` has reached `wanted`, and not before `ns`.
    wait_for_grid, ///< Goes on once the launch ahead of its own is complete.
    exit,
  };
  kind what = kind::exit;
  u64 ns = 0;
  u32 semaphore = 0;
  u32 wanted = 0;
};

enum class milestone { completed, all_triggered, all_started, one_started };

/// What must have happened to an earlier launch before a later one may begin.
struct precondition {
  milestone what;
  u32 launch;
};

/// One kernel launch of a simulation.
struct launch {
  u32 blocks = 0;
  block_footprint footprint;
  std::vector<precondition> after;
  u64 delay_ns = 0;        ///< From the last precondition to the first block's place on an SM.
  u32 ahead = no_id;       ///< The launch for whose completion a grid wait waits.
  u32 first_of_run = 0;    ///< The run is [first_of_run, this one] where this one closes it.
  bool closes_run = false; ///< What is ordered behind the run is ordered behind this launch alone.

  // Progress, kept by the scheduler.
  u32 placed = 0, started = 0, triggered = 0, exited = 0;
  bool released = false;
  u64 first_block_ns = 0, end_ns = 0;
  std::vector<u32> order; ///< Of its blocks; empty where it follows from `placed`.

  bool complete() const { return exited == blocks; }
  bool has(milestone what) const {
    switch (what) {
    case milestone::completed:
      return complete();
    case milestone::all_triggered:
      return triggered == blocks;
    case milestone::all_started:
      return started == blocks;
    case milestone::one_started:
      break;
    }
    return started > 0;
  }
};

/// A block that has a place on an SM.
struct resident {
  enum class state { free, running, waiting, waiting_for_grid };
  state is = state::free;
  u32 launch = 0, block = 0, sm = 0;
  bool started = false, triggered = false;
  u32 semaphore = 0, wanted = 0; ///< While it waits.
  u32 next_waiter = no_id;       ///< On the same semaphore, by rising `wanted`.
  u64 waiting_since = 0, not_before = 0;
};

} // namespace cusync::sim
