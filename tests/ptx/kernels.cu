// SPDX-License-Identifier: MIT
// Kernels whose PTX check_ptx.sh reads. Each takes one tile, so that "before" and "behind" are paths
// without a loop. Produced elements have 16 bits and nothing else has: an access to one is a .u16.

#include <cusync/dependence/row_dependence.hpp>
#include <cusync/device/cuda_backend.cuh>
#include <cusync/kernels/gemm.cuh>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>
#include <cusync/stage.hpp>

using namespace cusync;

namespace {

constexpr operand<0> A;
template <class Policy> using read = inputs<reads<0, Policy, row_dependence>>;

using First = CuStage<RowMajor, inputs<>, outputs<RowSync>>::ref<cuda_backend>;
using Middle = CuStage<RowMajor, read<RowSync>, outputs<RowSync>>::ref<cuda_backend>;
using Steps = CuStage<RowMajor, read<TileSync>, outputs<TileSync>>::ref<cuda_backend>;
using Claimed =
    CuStage<RowMajor, read<TileSync>, outputs<RowSync>, tile_source::counter>::ref<cuda_backend>;

} // namespace

extern "C" __global__ void producer_by_block(unsigned short* out, First stage) {
  stage.start();
  stage.for_each_tile([&](tile_coord tile) {
    out[tile.row * blockDim.x + threadIdx.x] = static_cast<unsigned short>(tile.col);
    stage.post(tile);
  });
}

extern "C" __global__ void producer_by_warp(unsigned short* out, First stage) {
  stage.start(by_warp{});
  stage.for_each_tile(
      [&](tile_coord tile) {
        out[tile.row * 32 + threadIdx.x] = static_cast<unsigned short>(tile.col);
        stage.post(tile, by_warp{});
      },
      by_warp{});
}

extern "C" __global__ void consumer_by_block(const unsigned short* in, unsigned short* out,
                                             Middle stage) {
  stage.start();
  stage.for_each_tile([&](tile_coord tile) {
    stage.wait_all(A, tile);
    const u32 at = tile.row * blockDim.x + threadIdx.x;
    out[at] = in[at];
    stage.post(tile);
  });
}

extern "C" __global__ void consumer_by_warp(const unsigned short* in, unsigned short* out,
                                            Middle stage) {
  stage.start(by_warp{});
  stage.for_each_tile(
      [&](tile_coord tile) {
        stage.wait_all(A, tile, by_warp{});
        const u32 at = tile.row * 32 + threadIdx.x;
        out[at] = in[at];
        stage.post(tile, by_warp{});
      },
      by_warp{});
}

// With loops: over steps, and over tiles.

extern "C" __global__ void looping_by_block(const unsigned short* in, unsigned short* out,
                                            u32 steps, Steps stage) {
  stage.start();
  stage.for_each_tile([&](tile_coord tile) {
    const u32 at = tile.row * blockDim.x + threadIdx.x;
    unsigned short sum = 0;
    for (u32 step = 0; step < steps; ++step) {
      stage.wait(A, tile, step);
      sum = static_cast<unsigned short>(sum + in[at + step]);
    }
    out[at] = sum;
    stage.post(tile);
  });
}

extern "C" __global__ void looping_by_warp(const unsigned short* in, unsigned short* out,
                                           Claimed stage) {
  stage.start(by_warp{});
  while (auto tile = stage.tile(by_warp{})) {
    stage.wait_all(A, *tile, by_warp{});
    const u32 at = tile.coord.row * 32 + threadIdx.x;
    out[at] = in[at];
    stage.post(*tile, by_warp{});
  }
}

// What ships: loads of produced tiles are cp.async.

template __global__ void cusync::gemm<gemm_64x64x64<load_order::wait_first>, Steps>(gemm_arguments,
                                                                                    Steps);
template __global__ void
    cusync::gemm<gemm_64x64x64<load_order::weights_first>, Steps>(gemm_arguments, Steps);
