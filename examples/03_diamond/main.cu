// SPDX-License-Identifier: MIT
// A chain that is no line: head -> left and right -> join. Stages may be declared in any order.

#include <cusync/cusync.cuh>                     // CuSync
#include <cusync/dependence/row_dependence.hpp>  // row_dependence
#include <cusync/dependence/tile_dependence.hpp> // tile_dependence
#include <cusync/order/row_major.hpp>            // RowMajor
#include <cusync/policy/row_sync.hpp>            // RowSync
#include <cusync/policy/tile_sync.hpp>           // TileSync

#include <cstdio>

using namespace cusync;

// Tiles of one row and 64 columns, an element a thread.
constexpr u32 rows = 1000, cols = 384, width = 64, grid_cols = cols / width;
constexpr row_dependence whole_row{{rows, cols}, {1, width}, 1, width, grid_cols};
constexpr tile_dependence same_tile{{rows, cols}, {1, width}, {1, width}};

// Two policies that guard the head's output, one for each consumer; two inputs of the join.
template <int Operand> using a_tile = reads<Operand, TileSync, tile_dependence>;
using Head = CuStage<RowMajor, inputs<>, outputs<RowSync, TileSync>>;
using Left = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<TileSync>>;
using Right = CuStage<RowMajor, inputs<a_tile<0>>, outputs<TileSync>>;
using Join = CuStage<RowMajor, inputs<a_tile<0>, a_tile<1>>, outputs<>>;
constexpr operand<0> A;
constexpr operand<1> B;

// What a tile computes, each behind its waits.
struct make_head {
  template <class Stage> __device__ int value(Stage&, tile_coord, u32 at) const {
    return static_cast<int>(at / cols + at % cols);
  }
};
struct sum_of_row {
  const int* head;
  template <class Stage> __device__ int value(Stage& stage, tile_coord tile, u32 at) const {
    stage.wait_all(A, tile);
    int sum = 0;
    for (u32 col = 0; col < cols; ++col) sum += head[at / cols * cols + col];
    return sum;
  }
};
struct add {
  const int *a, *b;
  template <class Stage> __device__ int value(Stage& stage, tile_coord tile, u32 at) const {
    stage.wait_all(A, tile);
    stage.wait_all(B, tile); // compiles to nothing where a stage declares no B
    return a[at] + b[at];
  }
};

template <class Stage> using of = typename Stage::template ref<cuda_backend>;

template <class Body, class Stage> __global__ void tiles(Body body, int* out, Stage stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    const u32 at = (*tile).row * cols + (*tile).col * width + threadIdx.x;
    out[at] = body.value(stage, *tile, at);
    stage.post(*tile);
  }
}

int main() try {
  int* out[4];
  for (int*& each : out)
    if (const cudaError_t failed = cudaMallocManaged(&each, rows * cols * sizeof(int)))
      throw cuda_error(failed, "allocate");
  const auto [head, left, right, join] = out;

  CuSync chain;
  auto& join_stage = chain.stage<Join>("join", {rows, grid_cols, 1}, RowMajor{});
  auto& left_stage = chain.stage<Left>("left", {rows, grid_cols, 1}, RowMajor{});
  auto& right_stage = chain.stage<Right>("right", {rows, grid_cols, 1}, RowMajor{});
  auto& head_stage = chain.stage<Head>("head", {rows, grid_cols, 1}, RowMajor{});
  chain.dependency<RowSync>(head_stage, left_stage, A, whole_row);
  chain.dependency<TileSync>(head_stage, right_stage, A, same_tile);
  chain.dependency<TileSync>(left_stage, join_stage, A, same_tile);
  chain.dependency<TileSync>(right_stage, join_stage, B, same_tile);
  const auto run_head = chain.kernel(head_stage, tiles<make_head, of<Head>>, width);
  const auto run_left = chain.kernel(left_stage, tiles<sum_of_row, of<Left>>, width);
  const auto run_right = chain.kernel(right_stage, tiles<add, of<Right>>, width);
  const auto run_join = chain.kernel(join_stage, tiles<add, of<Join>>, width);
  chain.launch(nullptr, run_head({}, head), run_left({head}, left), run_right({head, head}, right),
               run_join({left, right}, join));
  chain.synchronize(nullptr);

  u32 wrong = 0;
  for (u32 i = 0; i < rows * cols; ++i) {
    const u32 row = i / cols, col = i % cols;
    wrong += join[i] != static_cast<int>(cols * row + cols * (cols - 1) / 2 + 2 * (row + col));
  }
  std::printf("diamond, mode %s: %u of %u elements are wrong\n", name_of(chain.mode()), wrong,
              rows * cols);
  return wrong == 0 ? 0 : 1;
} catch (const error& failed) {
  std::printf("%s\n", failed.what());
  return 1;
}
