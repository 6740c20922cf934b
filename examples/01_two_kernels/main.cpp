// SPDX-License-Identifier: MIT
// The chain of main.cu on a virtual GPU: the same stages, policy and order, real results, and the time
// that a GPU of this kind would take.

#include <cusync/dependence/row_dependence.hpp> // row_dependence
#include <cusync/order/row_major.hpp>           // RowMajor
#include <cusync/policy/row_sync.hpp>           // RowSync
#include <cusync/sim/cusync.hpp>                // sim::CuSync

#include <cstdio>
#include <numeric>
#include <vector>

using namespace cusync;

constexpr u32 rows = 1056, cols = 384, width = 64; // a tile is `width` elements of a row
constexpr operand<0> A;
constexpr row_dependence whole_rows{{rows, cols}, {1, width}, 1, width, cols / width};

using First = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
using Second = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;

/// out = a + the sum of a's row: a block on one host thread.
constexpr auto add_row_sum = [](const int* a, int* out, auto stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    stage.wait_all(A, *tile);
    const int* row = a + (*tile).row * cols;
    const int sum = std::accumulate(row, row + cols, 0);
    for (u32 col = (*tile).col * width; col < ((*tile).col + 1) * width; ++col)
      out[(*tile).row * cols + col] = row[col] + sum;
    stage.post(*tile);
  }
};

sim::report add_row_sum_twice(const int* x, int* y, int* z, launch_mode mode) {
  sim::CuSync chain(sim::find_gpu("H200"), {.mode = mode});
  auto& first = chain.stage<First>("first", whole_rows.producer(), RowMajor{});
  auto& second = chain.stage<Second>("second", whole_rows.consumer(), RowMajor{});
  chain.dependency<RowSync>(first, second, A, whole_rows);
  const sim::block_resources block{.threads = width};
  const sim::tile_cost tile{.ns = 10'000}; // assumed: a tile takes 10 us
  const auto run_first = chain.kernel(first, add_row_sum, block, tile);
  const auto run_second = chain.kernel(second, add_row_sum, block, tile);
  return chain.launch(run_first(x, y), run_second(y, z));
}

int main() {
  std::vector<int> x(rows * cols);
  for (u32 i = 0; i < x.size(); ++i) x[i] = static_cast<int>(i % 7);
  u32 wrong = 0;
  double us[2];
  for (const launch_mode mode : {launch_mode::serial, launch_mode::automatic}) {
    std::vector<int> y(x.size(), -1), z(x.size(), -1);
    const sim::report report = add_row_sum_twice(x.data(), y.data(), z.data(), mode);
    us[mode == launch_mode::serial ? 0 : 1] = static_cast<double>(report.makespan_ns) * 1e-3;
    for (u32 row = 0; row < rows; ++row) {
      const int* of_x = x.data() + row * cols;
      const int sum = std::accumulate(of_x, of_x + cols, 0);
      for (u32 i = 0; i < cols; ++i)
        wrong += z[row * cols + i] != of_x[i] + sum + static_cast<int>(cols + 1) * sum;
    }
  }
  std::printf("two kernels on a virtual H200: %.1f us in stream order, %.1f us overlapped; "
              "%u elements are wrong\n",
              us[0], us[1], wrong);
  return wrong == 0 && us[1] < us[0] ? 0 : 1;
}
