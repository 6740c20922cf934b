// SPDX-License-Identifier: MIT
// Chains of three stages and a diamond, computed as GEMMs are, under adversarial schedules.

#include "any_order.hpp"
#include "gemm.hpp"

#include <cusync/policy/batched_row_sync.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

#include <gtest/gtest.h>

namespace cusync::test {
namespace {

/// Calls `visit(schedule, turn)` for every mode, number of slots and way to dispatch.
template <class Visit> void for_each_schedule(Visit visit) {
  u32 turn = 0;
  for (const launch_mode mode : {launch_mode::serial, launch_mode::pdl, launch_mode::streams})
    for (u32 slots = 1; slots <= 8; ++slots)
      for (const sim::pick dispatch :
           {sim::pick::in_order, sim::pick::reversed, sim::pick::random}) {
        sim::schedule how{.mode = mode,
                          .blocks = dispatch,
                          .stages = dispatch,
                          .ties = dispatch,
                          .seed = ++turn,
                          .slots = slots,
                          .jitter = 0.1 * (turn % 10)};
        visit(how, turn);
        if (testing::Test::HasFatalFailure()) return;
      }
}

void expect_equal(const matrix& found, const matrix& wanted) {
  for (u32 row = 0; row < wanted.extent.rows; ++row)
    for (u32 col = 0; col < wanted.extent.cols; ++col)
      ASSERT_EQ(found.at(row, col), wanted.at(row, col))
          << "element (" << row << ", " << col << ")";
}

template <class... Matrices> void poison(Matrices&... matrices) { (matrices.poison(), ...); }

template <class Policy, int Operand> using from_row = reads<Operand, Policy, row_dependence>;
template <class Policy, int Operand> using from_tile = reads<Operand, Policy, tile_dependence>;

/// X W1 -> Y; Y W2 -> Z; Z W3 + Y -> out: the third reads its neighbour by rows or as a whole, and the
/// stage before that by tiles. Heights, widths and slices of the tiles differ from stage to stage.
template <class Second, class Third> void three_stages() {
  matrix x({11, 9}, {11, 9}), w1({9, 14}, {9, 14}), w2({14, 10}, {14, 10}), w3({10, 14}, {10, 14});
  x.fill(1), w1.fill(2), w2.fill(3), w3.fill(4);
  matrix y({11, 14}, {4, 3}, 2), z({11, 10}, {3, 4}), out({11, 14}, {2, 5}, 3);
  const gemm first{&x, &w1, nullptr, &y, 3}, second{&y, &w2, nullptr, &z, 4},
      third{&z, &w3, &y, &out, 2};

  for_each_schedule([&](const sim::schedule& how, u32 turn) {
    using P = CuStage<any_order, inputs<>, outputs<Second, TileSync>, tile_source::counter>;
    using C = CuStage<any_order, inputs<from_row<Second, 0>>, outputs<Third>, tile_source::counter>;
    using K = CuStage<any_order, inputs<from_row<Third, 0>, from_tile<TileSync, 1>>, outputs<>>;
    sim::CuSync chain(sim::find_gpu("H200"), how);
    auto& p = chain.stage<P>("first", first.grid(), all_orders[turn % 5],
                             {.blocks = turn % 2 == 0 ? 7u : 0u});
    auto& c = chain.stage<C>("second", second.grid(), all_orders[turn / 2 % 5],
                             {.blocks = turn % 3 == 0 ? 4u : 0u});
    auto& k = chain.stage<K>("third", third.grid(), all_orders[turn / 3 % 5],
                             {.blocks = turn % 4 == 0 ? 99u : 0u});
    chain.dependency<Second>(p, c, A, second.reads_a());
    chain.dependency<Third>(c, k, A, third.reads_a());
    chain.dependency<TileSync>(p, k, R, third.reads_r());
    const auto run_p = chain.kernel(p, gemm_kernel{});
    const auto run_c = chain.kernel(c, gemm_kernel{});
    const auto run_k = chain.kernel(k, gemm_kernel{});
    for (u32 run = 0; run < 2; ++run) {
      poison(y, z, out);
      ASSERT_NO_THROW(chain.launch(run_p(first), run_c(second), run_k(third)))
          << name_of(how.mode) << " " << turn;
      expect_equal(y, first.reference());
      expect_equal(z, second.reference());
      expect_equal(out, third.reference());
    }
  });
}

TEST(Chain, ThreeStagesByRows) { three_stages<RowSync, RowSync>(); }
TEST(Chain, ThreeStagesWithAWholeGridFirst) { three_stages<GridSync, RowSync>(); }
TEST(Chain, ThreeStagesWithAWholeGridLast) { three_stages<BatchedRowSync, GridSync>(); }

/// One producer with two consumers of different policies; a last stage that reads both.
TEST(Chain, Diamond) {
  matrix x({12, 8}, {12, 8}), w({8, 10}, {8, 10}), wl({10, 6}, {10, 6}), wr({8, 10}, {8, 10}),
      wj({6, 10}, {6, 10});
  x.fill(1), w.fill(2), wl.fill(3), wr.fill(4), wj.fill(5);
  matrix top({12, 10}, {5, 4}), left({12, 6}, {2, 3}), right({12, 10}, {4, 4}),
      bottom({12, 10}, {3, 7});
  const gemm make_top{&x, &w, nullptr, &top, 3}, make_left{&top, &wl, nullptr, &left, 4};
  const gemm make_right{&x, &wr, &top, &right, 8}, make_bottom{&left, &wj, &right, &bottom, 2};

  for_each_schedule([&](const sim::schedule& how, u32 turn) {
    using Top = CuStage<any_order, inputs<>, outputs<RowSync, TileSync>>;
    using Left = CuStage<any_order, inputs<from_row<RowSync, 0>>, outputs<TileSync>>;
    using Right = CuStage<any_order, inputs<from_tile<TileSync, 1>>, outputs<RowSync>>;
    using Bottom =
        CuStage<any_order, inputs<from_row<TileSync, 0>, from_tile<RowSync, 1>>, outputs<>>;
    sim::CuSync chain(sim::find_gpu("H200"), how);
    // Declared from the bottom up: launches follow the dependences.
    auto& bottom_stage = chain.stage<Bottom>("bottom", make_bottom.grid(), all_orders[turn % 5]);
    auto& left_stage = chain.stage<Left>("left", make_left.grid(), all_orders[turn / 2 % 5]);
    auto& right_stage = chain.stage<Right>("right", make_right.grid(), all_orders[turn / 3 % 5]);
    auto& top_stage = chain.stage<Top>("top", make_top.grid(), all_orders[turn / 4 % 5]);
    chain.dependency<RowSync>(top_stage, left_stage, A, make_left.reads_a());
    chain.dependency<TileSync>(top_stage, right_stage, R, make_right.reads_r());
    chain.dependency<TileSync>(left_stage, bottom_stage, A, make_bottom.reads_a());
    chain.dependency<RowSync>(right_stage, bottom_stage, R, make_bottom.reads_r());
    const auto run_top = chain.kernel(top_stage, gemm_kernel{});
    const auto run_left = chain.kernel(left_stage, gemm_kernel{});
    const auto run_right = chain.kernel(right_stage, gemm_kernel{});
    const auto run_bottom = chain.kernel(bottom_stage, gemm_kernel{});
    poison(top, left, right, bottom);
    ASSERT_NO_THROW(chain.launch(run_left(make_left), run_bottom(make_bottom), run_top(make_top),
                                 run_right(make_right)))
        << name_of(how.mode) << " " << turn;
    expect_equal(right, make_right.reference());
    expect_equal(bottom, make_bottom.reference());
  });
}

} // namespace
} // namespace cusync::test
