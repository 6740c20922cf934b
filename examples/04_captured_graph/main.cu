// SPDX-License-Identifier: MIT
// A chain in a CUDA graph: captured once, replayed many times, mixed with eager runs.

#include <cusync/cusync.cuh>                    // CuSync
#include <cusync/dependence/row_dependence.hpp> // row_dependence
#include <cusync/order/row_major.hpp>           // RowMajor
#include <cusync/policy/row_sync.hpp>           // RowSync

#include <cstdio>

using namespace cusync;

// Tiles of one row and 64 columns, an element a thread.
constexpr u32 rows = 1000, cols = 384, width = 64, grid_cols = cols / width;
constexpr operand<0> A;
constexpr row_dependence reads_a{{rows, cols}, {1, width}, 1, width, grid_cols};

using First = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
using Second = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;

__global__ void count_up(int* a, First::ref<cuda_backend> stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    ++a[(*tile).row * cols + (*tile).col * width + threadIdx.x];
    stage.post(*tile);
  }
}

__global__ void sum_row(const int* a, int* sums, Second::ref<cuda_backend> stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    stage.wait_all(A, *tile);
    const u32 row = (*tile).row;
    int sum = 0;
    for (u32 col = 0; col < cols; ++col) sum += a[row * cols + col];
    sums[row * cols + (*tile).col * width + threadIdx.x] = sum;
  }
}

void ok(cudaError_t result) {
  if (result != cudaSuccess) throw cuda_error(result, "CUDA");
}

int main() try {
  int *a = nullptr, *sums = nullptr;
  ok(cudaMallocManaged(&a, rows * cols * sizeof(int)));
  ok(cudaMallocManaged(&sums, rows * cols * sizeof(int)));
  for (u32 i = 0; i < rows * cols; ++i) a[i] = 0;
  cudaStream_t stream = nullptr;
  ok(cudaStreamCreate(&stream));

  CuSync chain;
  auto& first = chain.stage<First>("count up", reads_a.producer(), RowMajor{});
  auto& second = chain.stage<Second>("sum", reads_a.consumer(), RowMajor{});
  chain.dependency<RowSync>(first, second, A, reads_a);
  const auto run_first = chain.kernel(first, count_up, width);
  const auto run_second = chain.kernel(second, sum_row, width);
  const auto enqueue = [&] { chain.launch(stream, run_first(a), run_second(a, sums)); };

  chain.prepare(); // allocates and loads, which a capture cannot
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  enqueue();
  ok(cudaStreamEndCapture(stream, &graph));
  ok(cudaGraphInstantiate(&executable, graph, 0));

  // No reset and no host synchronisation between the runs.
  int runs = 0;
  for (; runs < 100; ++runs)
    if (runs % 4 == 3)
      enqueue();
    else
      ok(cudaGraphLaunch(executable, stream));
  chain.synchronize(stream); // throws where a run gave up, a replayed one too

  u32 wrong = 0;
  for (u32 i = 0; i < rows * cols; ++i) wrong += sums[i] != runs * static_cast<int>(cols);
  std::printf("captured graph, mode %s: after %d runs %u of %u sums are wrong\n",
              name_of(chain.mode()), runs, wrong, rows * cols);
  ok(cudaGraphExecDestroy(executable));
  ok(cudaGraphDestroy(graph));
  return wrong == 0 ? 0 : 1;
} catch (const error& failed) {
  std::printf("%s\n", failed.what());
  return 1;
}
