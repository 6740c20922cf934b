// SPDX-License-Identifier: MIT
// A chain that is no line, on the virtual GPU: head -> left and right -> join. Stages may be declared
// in any order; a launch follows the dependences.

#include <cusync/dependence/row_dependence.hpp>  // row_dependence
#include <cusync/dependence/tile_dependence.hpp> // tile_dependence
#include <cusync/order/row_major.hpp>            // RowMajor
#include <cusync/policy/row_sync.hpp>            // RowSync
#include <cusync/policy/tile_sync.hpp>           // TileSync
#include <cusync/sim/cusync.hpp>                 // sim::CuSync

#include <cstdio>
#include <vector>

using namespace cusync;

// Tiles of one element, for brevity.
constexpr u32 rows = 40, cols = 6;
constexpr row_dependence whole_row{.matrix = {rows, cols},
                                   .producer_tile = {1, 1},
                                   .consumer_rows = 1,
                                   .step_cols = 1,
                                   .consumer_cols = cols};
constexpr tile_dependence same_tile{
    .matrix = {rows, cols}, .producer_tile = {1, 1}, .consumer_tile = {1, 1}};

// Two policies that guard the head's output, one for each consumer; two inputs of the join.
template <int Operand> using a_tile = reads<Operand, TileSync, tile_dependence>;
using Head = CuStage<RowMajor, inputs<>, outputs<RowSync, TileSync>>;
using Left = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<TileSync>>;
using Right = CuStage<RowMajor, inputs<a_tile<0>>, outputs<TileSync>>;
using Join = CuStage<RowMajor, inputs<a_tile<0>, a_tile<1>>, outputs<>>;
constexpr operand<0> A;
constexpr operand<1> B;

/// A stage's kernel; `value(tile, stage)` waits for what it reads.
template <class Value> auto kernel_of(Value value) {
  return [value](int* out, auto stage) {
    stage.start();
    while (auto tile = stage.tile()) {
      out[(*tile).row * cols + (*tile).col] = value(*tile, stage);
      stage.post(*tile);
    }
  };
}

int main() {
  std::vector<int> head(rows * cols, -1), left(head), right(head), join(head);
  sim::CuSync chain;
  auto& join_stage = chain.stage<Join>("join", {rows, cols, 1}, RowMajor{});
  auto& left_stage = chain.stage<Left>("left", {rows, cols, 1}, RowMajor{});
  auto& right_stage = chain.stage<Right>("right", {rows, cols, 1}, RowMajor{});
  auto& head_stage = chain.stage<Head>("head", {rows, cols, 1}, RowMajor{});
  chain.dependency<RowSync>(head_stage, left_stage, A, whole_row);
  chain.dependency<TileSync>(head_stage, right_stage, A, same_tile);
  chain.dependency<TileSync>(left_stage, join_stage, A, same_tile);
  chain.dependency<TileSync>(right_stage, join_stage, B, same_tile);

  const auto run_head = chain.kernel(head_stage, kernel_of([](tile_coord tile, auto&) {
                                       return static_cast<int>(tile.row + tile.col);
                                     }));
  const auto run_left = chain.kernel(left_stage, kernel_of([&](tile_coord tile, auto& stage) {
                                       stage.wait_all(A, tile);
                                       int sum = 0;
                                       for (u32 col = 0; col < cols; ++col)
                                         sum += head[tile.row * cols + col];
                                       return sum;
                                     }));
  const auto run_right = chain.kernel(right_stage, kernel_of([&](tile_coord tile, auto& stage) {
                                        stage.wait_all(A, tile);
                                        return 2 * head[tile.row * cols + tile.col];
                                      }));
  const auto run_join =
      chain.kernel(join_stage, kernel_of([&](tile_coord tile, auto& stage) {
                     stage.wait_all(A, tile);
                     stage.wait_all(B, tile);
                     return left[tile.row * cols + tile.col] + right[tile.row * cols + tile.col];
                   }));
  const sim::report report = chain.launch(run_head(head.data()), run_left(left.data()),
                                          run_right(right.data()), run_join(join.data()));

  u32 wrong = 0;
  for (u32 row = 0; row < rows; ++row)
    for (u32 col = 0; col < cols; ++col)
      wrong += join[row * cols + col] != static_cast<int>(cols * row + 15 + 2 * (row + col));
  std::printf("diamond on a virtual H200, launched as");
  for (const sim::stage_record& stage : report.stages) std::printf(" %s", stage.name.c_str());
  std::printf(": %u of %u elements are wrong\n", wrong, rows * cols);
  return wrong == 0 ? 0 : 1;
}
