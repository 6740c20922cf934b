// SPDX-License-Identifier: MIT
#pragma once

#include "synthetic_operand.hpp"

#include <cusync/cusync.cuh> // tile_coord

namespace cusync::cli {

/// One word a tile, so that time is spent on the clock and nothing else.
struct synthetic_arguments {
  const u32* in; ///< The stage before's words, row-major; null in the first stage.
  const u32*
      seed; ///< What the first stage adds: changes from run to run, also in a replayed graph.
  u32* out; ///< This stage's words.
  u32 cols; ///< Tiles a row.
  long long cycles; ///< A tile is busy for this many clocks of its SM.
};

/// Reads the row of words that the tile depends on, stays busy, then writes their sum plus one.
template <class Stage>
__device__ void synthetic_body(const synthetic_arguments& arguments, Stage& stage) {
  extern __shared__ char occupancy_limit[]; // its size alone matters
  stage.start();
  stage.for_each_tile([&](tile_coord tile) {
    stage.wait_all(previous, tile);
    const long long begin = clock64();
    u32 value = 0;
    if (arguments.in == nullptr) {
      value = *arguments.seed + tile.row * arguments.cols + tile.col;
    } else if (threadIdx.x == 0) {
      value = 1;
      for (u32 col = 0; col < arguments.cols; ++col)
        value += *static_cast<const volatile u32*>(arguments.in + tile.row * arguments.cols + col);
    }
    while (clock64() - begin < arguments.cycles) {
    }
    if (threadIdx.x == 0) arguments.out[tile.row * arguments.cols + tile.col] = value;
    stage.post(tile);
  });
}

template <class Stage> __global__ void synthetic(synthetic_arguments arguments, Stage stage) {
  synthetic_body(arguments, stage);
}

/// The same kernel without any stage code: a tile a block, in row-major order.
struct no_stage {
  tile_extent grid;
  __device__ void start() {}
  template <class Body> __device__ void for_each_tile(const Body& body) {
    body(tile_coord{blockIdx.x / grid.cols, blockIdx.x % grid.cols, 0});
  }
  template <class... Unused> __device__ void wait_all(Unused...) {}
  __device__ void post(tile_coord) {}
};

static __global__ void synthetic_plain(synthetic_arguments arguments, tile_extent grid) {
  no_stage stage{grid};
  synthetic_body(arguments, stage);
}

} // namespace cusync::cli
