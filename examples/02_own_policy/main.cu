// SPDX-License-Identifier: MIT
// A policy of one's own on a GPU: the one that main.cpp tests on the virtual GPU, unchanged.

#include "half_row_sync.hpp"

#include <cusync/cusync.cuh>                    // CuSync
#include <cusync/dependence/row_dependence.hpp> // row_dependence
#include <cusync/order/row_major.hpp>           // RowMajor

#include <cstdio>

using namespace cusync;

constexpr u32 rows = 3000, cols = 10 * 64, steps = 10, threads = 64;

// Tiles of one row and 64 columns; the consumer reads a row, 64 columns a step.
constexpr operand<0> A;
constexpr row_dependence reads_a{.matrix = {rows, cols},
                                 .producer_tile = {1, 64},
                                 .consumer_rows = 1,
                                 .step_cols = 64,
                                 .consumer_cols = 1};

using First = CuStage<RowMajor, inputs<>, outputs<HalfRowSync>>;
using Second = CuStage<RowMajor, inputs<reads<0, HalfRowSync, row_dependence>>, outputs<>>;

__global__ void produce(int* a, First::ref<cuda_backend> stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    const tile_coord at = *tile;
    a[at.row * cols + at.col * threads + threadIdx.x] = static_cast<int>(at.row + at.col);
    stage.post(at);
  }
}

__global__ void sum_row(const int* a, int* sums, Second::ref<cuda_backend> stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    const u32 row = (*tile).row;
    int sum = 0;
    for (u32 step = 0; step < steps; ++step) {
      stage.wait(A, *tile, step); // a look at steps 0 and 5; in between it costs a comparison
      sum += a[row * cols + step * threads + threadIdx.x];
    }
    sums[row * threads + threadIdx.x] = sum;
  }
}

int main() try {
  int *a = nullptr, *sums = nullptr;
  if (const cudaError_t failed = cudaMallocManaged(&a, rows * cols * sizeof(int)))
    throw cuda_error(failed, "allocate");
  if (const cudaError_t failed = cudaMallocManaged(&sums, rows * threads * sizeof(int)))
    throw cuda_error(failed, "allocate");

  CuSync chain;
  auto& first = chain.stage<First>("produce", reads_a.producer(), RowMajor{});
  auto& second = chain.stage<Second>("sum", reads_a.consumer(), RowMajor{});
  chain.dependency<HalfRowSync>(first, second, A, reads_a);
  const auto run_first = chain.kernel(first, produce, threads);
  const auto run_second = chain.kernel(second, sum_row, threads);
  chain.launch(nullptr, run_first(a), run_second(a, sums));
  chain.synchronize(nullptr);

  u32 wrong = 0;
  for (u32 row = 0; row < rows; ++row)
    for (u32 i = 0; i < threads; ++i)
      wrong += sums[row * threads + i] != static_cast<int>(row * 10 + 45);
  std::printf("HalfRowSync, mode %s: %u of %u sums are wrong\n", name_of(chain.mode()), wrong,
              rows * threads);
  return wrong == 0 ? 0 : 1;
} catch (const error& failed) {
  std::printf("%s\n", failed.what());
  return 1;
}
