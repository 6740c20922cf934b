// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/launch_mode.hpp> // launch_mode
#include <cusync/tile.hpp>        // tile_coord, u32, u64

#include <algorithm> // all_of
#include <optional>  // optional
#include <string>    // string
#include <vector>    // vector

namespace cusync::sim {

/// What `check` proves of a chain.
enum class property {
  tiles,      ///< Each tile is taken once; blocks without one take none.
  coverage,   ///< Each read of a produced tile stands behind a wait for it.
  thresholds, ///< Each wait ends, and none before all posts that it stands for, in any run.
  liveness,   ///< No schedule of the launch deadlocks.
  overwrites, ///< No buffer is written while its content may still be read.
};

constexpr const char* name_of(property of) {
  switch (of) {
  case property::tiles:
    return "tiles";
  case property::coverage:
    return "coverage";
  case property::thresholds:
    return "thresholds";
  case property::liveness:
    return "liveness";
  case property::overwrites:
    break;
  }
  return "overwrites";
}

enum class verdict {
  proved,
  refuted,  ///< With a counterexample.
  unproved, ///< Neither proof nor counterexample was found: not to be relied on.
};

constexpr const char* name_of(verdict of) {
  switch (of) {
  case verdict::proved:
    return "proved";
  case verdict::refuted:
    return "refuted";
  case verdict::unproved:
    break;
  }
  return "unproved";
}

/// A place where a chain goes wrong, and how it gets there.
struct counterexample {
  std::string stage; ///< Whose tile goes wrong.
  tile_coord tile;
  std::optional<u32> semaphore; ///< Of `other`, that the tile waits for or should wait for.
  std::string other;            ///< The stage on the other side; may be empty.
  std::optional<tile_coord> other_tile;
  std::string what;                  ///< One sentence, with values and remedy.
  std::vector<std::string> schedule; ///< What happens, in order.
};

struct property_result {
  property of = property::tiles;
  verdict is = verdict::proved;
  std::string why; ///< The proof in a sentence, or what is wrong.
  std::optional<counterexample> counter;
};

/// What an edge waits for beyond what is read.
struct over_wait {
  std::string producer, consumer;
  int operand = 0;
  std::string waits; ///< "semaphores", "grid", "launch order".
  u64 read = 0;      ///< Producer tiles, summed over the consumer's.
  u64 waited = 0;    ///< At least `read` where the edge is covered.
  u64 worst = 0;     ///< The most that one consumer tile waits for without reading it.
  tile_coord worst_tile;

  u64 excess() const { return waited > read ? waited - read : 0; }
};

struct check_report {
  launch_mode mode = launch_mode::serial; ///< In force.
  std::string mode_reason;                ///< Why it is not the one asked for.
  std::vector<property_result> results;   ///< One a property.
  std::vector<over_wait> edges;

  bool proved() const {
    return std::all_of(results.begin(), results.end(),
                       [](const property_result& each) { return each.is == verdict::proved; });
  }
  const property_result& operator[](property of) const {
    return results[static_cast<std::size_t>(of)];
  }
};

} // namespace cusync::sim
