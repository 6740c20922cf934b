// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include <cusync/dependence/grid_dependence.hpp>
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/dependence/strided_dependence.hpp>
#include <cusync/policy/batched_row_sync.hpp>
#include <cusync/policy/conv2d_tile_sync.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/no_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/strided_sync.hpp>
#include <cusync/policy/tile_sync.hpp>
#include <cusync/sync_policy.hpp>

#include <gtest/gtest.h>

#include <bitset>
#include <string>
#include <vector>

namespace cusync {
namespace {

using semaphore_set = std::bitset<128>; // the largest grid below has 8 x 12 tiles a slice

/// Calls `visit` with every range of `grid`, empty ones included.
template <class Visit> void for_each_range(tile_extent grid, Visit visit) {
  for (u32 row_begin = 0; row_begin <= grid.rows; ++row_begin)
    for (u32 row_end = row_begin; row_end <= grid.rows; ++row_end)
      for (u32 col_begin = 0; col_begin <= grid.cols; ++col_begin)
        for (u32 col_end = col_begin; col_end <= grid.cols; ++col_end)
          for (u32 stride = 1; stride <= grid.cols; ++stride)
            visit(tile_range{row_begin, row_end, col_begin, col_end, stride});
}

template <class Visit> void for_each_tile(tile_extent grid, Visit visit) {
  for (u32 row = 0; row < grid.rows; ++row)
    for (u32 col = 0; col < grid.cols; ++col)
      for (u32 slice = 0; slice < grid.slices; ++slice) visit(tile_coord{row, col, slice});
}

/// What is wrong with the posts: a semaphore out of range, or a count that never arrives.
template <sync_policy Policy> std::string posts_fault(const Policy& policy, tile_extent grid) {
  std::string fault;
  std::vector<u32> posts(policy.semaphore_count(), 0);
  for_each_tile(grid, [&](tile_coord tile) {
    const u32 semaphore = policy.semaphore_of(tile);
    if (semaphore < posts.size())
      ++posts[semaphore];
    else
      fault = "semaphore " + std::to_string(semaphore) + " out of range";
  });
  for (u32 semaphore = 0; semaphore < posts.size(); ++semaphore)
    if (policy.posts_expected(semaphore) != posts[semaphore])
      fault = "semaphore " + std::to_string(semaphore) + " is posted " +
              std::to_string(posts[semaphore]) + " times, not " +
              std::to_string(policy.posts_expected(semaphore));
  return fault;
}

template <sync_policy Policy>
semaphore_set semaphores_of(const Policy& policy, tile_extent grid, tile_range range) {
  semaphore_set needed;
  for (u32 row = range.row_begin; row < range.row_end; ++row)
    for (u32 col = range.col_begin; col < range.col_end; col += range.col_stride)
      for (u32 slice = 0; slice < grid.slices; ++slice)
        needed.set(policy.semaphore_of({row, col, slice}));
  return needed;
}

/// What is wrong with the guards of one range; `exact` asks for no semaphore that it does not need.
template <sync_policy Policy>
std::string guards_fault(const Policy& policy, tile_extent grid, tile_range range, bool exact) {
  const semaphore_range guards = policy.guards(range);
  semaphore_set guarded;
  for (u32 position = 0; position < guards.count(); ++position) {
    if (guards.at(position) >= policy.semaphore_count()) return "a guard is no semaphore";
    guarded.set(guards.at(position));
  }
  if (guarded.count() != guards.count()) return "a semaphore is polled twice";
  const semaphore_set needed = semaphores_of(policy, grid, range);
  if ((needed & ~guarded).any()) return "a tile is not guarded";
  if (exact && guarded != needed) return "a semaphore is waited for without need";
  return "";
}

std::string to_text(tile_extent grid, tile_range range) {
  return " in grid " + to_string(grid) + ", rows " + std::to_string(range.row_begin) + " to " +
         std::to_string(range.row_end) + ", columns " + std::to_string(range.col_begin) + " to " +
         std::to_string(range.col_end) + " by " + std::to_string(range.col_stride);
}

const auto always = [](tile_range) { return true; };

/// The first rule of `sync_policy` that `policy` breaks in `grid`, or nothing.
template <sync_policy Policy, class Exact = decltype(always)>
std::string fault_of(const Policy& policy, tile_extent grid, Exact exact = always) {
  std::string fault = posts_fault(policy, grid);
  if (!fault.empty()) return fault + " in grid " + to_string(grid);
  for_each_range(grid, [&](tile_range range) {
    if (!fault.empty()) return;
    fault = guards_fault(policy, grid, range, exact(range));
    if (!fault.empty()) fault += to_text(grid, range);
  });
  return fault;
}

/// Every grid up to 8 x 12 x 4, and every range in it; `check(grid)` names a fault or none.
template <class Check> void expect_no_fault_in_any_grid(Check check) {
  for (u32 rows = 1; rows <= 8; ++rows)
    for (u32 cols = 1; cols <= 12; ++cols)
      for (u32 slices = 1; slices <= 4; ++slices)
        ASSERT_EQ(check(tile_extent{rows, cols, slices}), "");
}

/// Rows without columns: nothing is read, but a policy of rows need not look at columns to be right.
const auto has_columns = [](tile_range range) { return range.rows() == 0 || range.cols() != 0; };

template <class Policy> std::string plain_fault(tile_extent grid) {
  return fault_of(Policy{grid}, grid);
}

TEST(GridSync, GuardsExactlyWhatIsRead) { expect_no_fault_in_any_grid(plain_fault<GridSync>); }

TEST(TileSync, GuardsExactlyWhatIsRead) { expect_no_fault_in_any_grid(plain_fault<TileSync>); }

TEST(Conv2DTileSync, GuardsExactlyWhatIsRead) {
  expect_no_fault_in_any_grid(plain_fault<Conv2DTileSync>);
}

TEST(RowSync, GuardsExactlyTheRowsThatAreRead) {
  expect_no_fault_in_any_grid(
      [](tile_extent grid) { return fault_of(RowSync{grid}, grid, has_columns); });
}

TEST(BatchedRowSync, GuardsExactlyTheRowsThatAreRead) {
  for (const u32 batch : {1u, 2u, 3u, 8u, 9u, 0xffffffffu})
    expect_no_fault_in_any_grid([=](tile_extent grid) {
      return fault_of(BatchedRowSync{grid, batch}, grid, has_columns);
    });
}

/// Whether the residues of a range's columns are one, or ascend: what one `semaphore_range` can say.
bool residues_ascend(tile_range range, u32 stride) {
  if (range.empty() || range.col_stride % stride == 0) return true;
  u32 previous = range.col_begin % stride;
  for (u32 col = range.col_begin; col < range.col_end; col += range.col_stride) {
    if (col % stride < previous || (col != range.col_begin && col % stride == previous))
      return false;
    previous = col % stride;
  }
  return true;
}

TEST(StridedSync, GuardsExactlyWhatIsReadWhereResiduesAscend) {
  for (const u32 stride : {1u, 2u, 3u, 4u, 5u, 7u, 12u, 13u, 0xffffffffu})
    expect_no_fault_in_any_grid([=](tile_extent grid) {
      return fault_of(StridedSync{grid, stride}, grid,
                      [=](tile_range range) { return residues_ascend(range, stride); });
    });
}

TEST(StridedSync, OneWaitCoversQKAndVOfAHead) {
  const StridedSync policy{{2, 12, 1}, 4};
  EXPECT_EQ(policy.semaphore_count(), 8u);
  EXPECT_EQ(policy.posts_expected(5), 3u);
  const semaphore_range guards = policy.guards({1, 2, 3, 12, 4});
  EXPECT_EQ(guards.count(), 1u);
  EXPECT_EQ(guards.at(0), 7u);
}

TEST(NoSync, HasNoSemaphoreAndGuardsNothing) {
  const NoSync policy{{3, 4, 2}};
  EXPECT_EQ(policy.semaphore_count(), 0u);
  for_each_range({3, 4, 2}, [&](tile_range range) { ASSERT_EQ(policy.guards(range).count(), 0u); });
}

/// A user's own: one semaphore a column of tiles.
struct ColumnSync {
  tile_extent producer;

  constexpr u32 semaphore_count() const { return producer.cols; }
  constexpr u32 semaphore_of(tile_coord tile) const { return tile.col; }
  constexpr u32 posts_expected(u32) const { return producer.rows * producer.slices; }
  constexpr semaphore_range guards(tile_range range) const {
    if (range.empty()) return {};
    return {range.col_begin, 1, 0, range.cols(), range.col_stride};
  }
  friend constexpr bool operator==(ColumnSync, ColumnSync) = default;
};
static_assert(derivable_policy<ColumnSync>);

TEST(SyncPolicy, AUsersPolicyIsHeldToTheSameRules) {
  expect_no_fault_in_any_grid(plain_fault<ColumnSync>);
}

/// Forgets that every slice of a split-K tile posts.
struct ForgetsSlices : ColumnSync {
  constexpr u32 posts_expected(u32) const { return producer.rows; }
};

/// Waits for the first column only.
struct ForgetsColumns : ColumnSync {
  constexpr semaphore_range guards(tile_range range) const { return {range.col_begin, 1, 0, 1, 0}; }
};

TEST(SyncPolicy, TheseTestsCanFail) {
  const tile_extent grid{2, 3, 2};
  EXPECT_EQ(fault_of(ForgetsSlices{{grid}}, grid),
            "semaphore 2 is posted 4 times, not 2 in grid 2 x 3 x 2");
  EXPECT_NE(fault_of(ForgetsColumns{{grid}}, grid), "");
}

TEST(SemaphoreRange, RunsThroughInnerThenOuter) {
  constexpr semaphore_range range{
      .begin = 5, .outer = 2, .outer_stride = 10, .inner = 3, .inner_stride = 2};
  std::vector<u32> semaphores;
  for (u32 position = 0; position < range.count(); ++position)
    semaphores.push_back(range.at(position));
  EXPECT_EQ(semaphores, (std::vector<u32>{5, 7, 9, 15, 17, 19}));
}

constexpr row_dependence gemm{.matrix = {512, 1024},
                              .producer_tile = {128, 256},
                              .consumer_rows = 64,
                              .step_cols = 64,
                              .consumer_cols = 7,
                              .producer_slices = 3};

TEST(Derive, TakesTheProducersGrid) {
  constexpr tile_extent producer{4, 4, 3};
  EXPECT_EQ(derive<TileSync>(gemm), TileSync{producer});
  EXPECT_EQ(derive<RowSync>(gemm), RowSync{producer});
  EXPECT_EQ(derive<GridSync>(gemm), GridSync{producer});
  EXPECT_EQ(derive<NoSync>(gemm), NoSync{producer});
  EXPECT_EQ(derive<BatchedRowSync>(gemm), (BatchedRowSync{producer, 2}));
  EXPECT_EQ(derive<Conv2DTileSync>(gemm), (Conv2DTileSync{{producer}}));
  EXPECT_EQ(derive<ColumnSync>(gemm), ColumnSync{producer});
}

TEST(Derive, StridedSyncTakesTheStrideOfItsDependence) {
  EXPECT_EQ(derive<StridedSync>(strided_dependence{{2, 12, 1}, 4}), (StridedSync{{2, 12, 1}, 4}));
  EXPECT_EQ(derive<StridedSync>(gemm), (StridedSync{{4, 4, 3}, 1}));
}

TEST(Derive, HoldsAtCompileTime) {
  static_assert(derive<RowSync>(gemm).posts_expected(0) == 12);
  static_assert(derive<GridSync>(grid_dependence{{3, 5, 2}, {1, 1, 1}}).posts_expected(0) == 30);
}

TEST(FieldCase29, PolicyParametersThatWouldDivideByZeroAreRefused) {
  EXPECT_EQ(refusal_of([] {
              BatchedRowSync{{4, 4, 1}, 0}.validate();
            }),
            "BatchedRowSync.batch is 0; it must be at least 1");
  EXPECT_EQ(refusal_of([] {
              StridedSync{{4, 4, 1}, 0}.validate();
            }),
            "StridedSync.stride is 0; it must be at least 1");
}

TEST(FieldCase29, GridsWithoutTilesExpectNoPosts) {
  for (const tile_extent grid :
       {tile_extent{0, 4, 1}, tile_extent{4, 0, 1}, tile_extent{0, 0, 2}}) {
    EXPECT_EQ(fault_of(GridSync{grid}, grid), "");
    EXPECT_EQ(fault_of(TileSync{grid}, grid), "");
    EXPECT_EQ(fault_of(RowSync{grid}, grid, has_columns), "");
    EXPECT_EQ(fault_of(BatchedRowSync{grid, 3}, grid, has_columns), "");
    EXPECT_EQ(fault_of(StridedSync{grid, 3}, grid), "");
  }
}

TEST(FieldCase29, TheLargestGridIsCountedWithoutWrapping) {
  constexpr tile_extent grid{65536, 32767, 1};
  constexpr tile_coord corner{65535, 32766, 0};
  EXPECT_EQ(GridSync{grid}.posts_expected(0), grid.count());
  EXPECT_EQ(TileSync{grid}.semaphore_of(corner), grid.count() - 1);
  EXPECT_EQ((StridedSync{grid, 32767}.semaphore_of(corner)), grid.count() - 1);
  const semaphore_range all = TileSync{grid}.guards({0, grid.rows, 0, grid.cols});
  EXPECT_EQ(all.at(all.count() - 1), grid.count() - 1);
}

} // namespace
} // namespace cusync
