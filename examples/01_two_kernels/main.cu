// SPDX-License-Identifier: MIT
// Two dependent kernels that overlap: a tile of the second begins as soon as the row that it reads is
// there. `+` marks what cuSync adds to an ordinary kernel.

#include <cusync/cusync.cuh>                    // CuSync
#include <cusync/dependence/row_dependence.hpp> // row_dependence
#include <cusync/order/row_major.hpp>           // RowMajor
#include <cusync/policy/row_sync.hpp>           // RowSync

using namespace cusync;

constexpr u32 rows = 1056, cols = 384, width = 64; // a tile is `width` elements of a row
constexpr operand<0> A;
constexpr row_dependence whole_rows{{rows, cols}, {1, width}, 1, width, cols / width};

using First = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
using Second = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;

/// out = a + the sum of a's row. In `First`, which declares no A, the wait compiles to nothing.
template <class Stage> __global__ void add_row_sum(const int* a, int* out, Stage stage) { // + stage
  stage.start();                                                                          // +
  while (auto tile = stage.tile()) { // + instead of blockIdx
    stage.wait_all(A, *tile);        // +
    const u32 row = (*tile).row, col = (*tile).col * width + threadIdx.x;
    int sum = a[row * cols + col];
    for (u32 i = 0; i < cols; ++i) sum += a[row * cols + i];
    out[row * cols + col] = sum;
    stage.post(*tile); // +
  }
}

const char* add_row_sum_twice(const int* x, int* y, int* z, cudaStream_t stream) {
  CuSync chain;
  auto& first = chain.stage<First>("first", whole_rows.producer(), RowMajor{});
  auto& second = chain.stage<Second>("second", whole_rows.consumer(), RowMajor{});
  chain.dependency<RowSync>(first, second, A, whole_rows);
  const auto run_first = chain.kernel(first, add_row_sum<First::ref<cuda_backend>>, width);
  const auto run_second = chain.kernel(second, add_row_sum<Second::ref<cuda_backend>>, width);
  chain.launch(stream, run_first(x, y), run_second(y, z));
  chain.synchronize(stream);
  return name_of(chain.mode());
}

// That it is right: the sum of a row of y is (cols + 1) times that of x.

#include <cstdio>

int main() try {
  int* memory[3];
  for (int*& each : memory)
    if (const cudaError_t failed = cudaMallocManaged(&each, rows * cols * sizeof(int)))
      throw cuda_error(failed, "allocate");
  const auto [x, y, z] = memory;
  for (u32 i = 0; i < rows * cols; ++i) x[i] = static_cast<int>(i % 7), y[i] = -1, z[i] = -1;

  const char* mode = add_row_sum_twice(x, y, z, nullptr);

  u32 wrong = 0;
  for (u32 row = 0; row < rows; ++row) {
    int sum = 0;
    for (u32 i = 0; i < cols; ++i) sum += x[row * cols + i];
    for (u32 i = 0; i < cols; ++i)
      wrong += z[row * cols + i] != x[row * cols + i] + sum + static_cast<int>(cols + 1) * sum;
  }
  std::printf("two kernels, mode %s: %u of %u elements are wrong\n", mode, wrong, rows * cols);
  return wrong == 0 ? 0 : 1;
} catch (const error& failed) {
  std::printf("%s\n", failed.what());
  return 1;
}
