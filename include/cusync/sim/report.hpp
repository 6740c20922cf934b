// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/launch_mode.hpp> // launch_mode
#include <cusync/tile.hpp>        // tile_coord, u32, u64

#include <cmath>  // ceil
#include <string> // string
#include <vector> // vector

namespace cusync::sim {

/// One tile on the timeline. Times are virtual, in nanoseconds since the simulation began.
struct tile_record {
  u32 run = 0;   ///< Counted from the start of the simulation.
  u32 stage = 0; ///< Index in the chain.
  tile_coord tile;
  u32 block = 0;
  u32 sm = 0;
  u64 start_ns = 0;
  u64 end_ns = 0;
  u64 work_ns = 0; ///< The rest is waiting, claiming and posting.
  u64 wait_ns = 0;
};

/// A time in which a tile could not go on.
struct wait_record {
  std::size_t tile = 0; ///< Index in the timeline.
  u64 start_ns = 0;
  u64 end_ns = 0;
};

/// One launch of a stage.
struct stage_record {
  u32 run = 0;
  u32 stage = 0;
  std::string name;
  u32 tiles = 0;
  u32 blocks = 0;
  u32 per_sm = 0;          ///< Blocks of this stage that an SM holds at once.
  u64 blocks_per_wave = 0; ///< On all SMs.
  u64 start_ns = 0;        ///< The stage may begin.
  u64 end_ns = 0;          ///< Its last block has left.
  u64 work_ns = 0;         ///< Of all blocks together.
  u64 wait_ns = 0;

  double waves() const {
    return static_cast<double>(blocks) / static_cast<double>(blocks_per_wave);
  }
  /// The part of the places in whole waves that holds a block.
  double wave_utilisation() const { return waves() / std::ceil(waves()); }
};

/// What a simulation found.
struct report {
  launch_mode mode = launch_mode::serial;
  u64 makespan_ns = 0;
  double utilisation =
      0; ///< Work over makespan times places, a place being an SM's share for a block.
  u64 work_ns = 0;
  u64 wait_ns = 0;
  std::vector<stage_record> stages; ///< In launch order, run after run.
  std::vector<tile_record> timeline;
  std::vector<wait_record> waits;
};

} // namespace cusync::sim
