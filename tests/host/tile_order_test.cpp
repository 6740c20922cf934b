// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include <cusync/order/column_major.hpp>
#include <cusync/order/grouped_row_major.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/order/strided_row_major.hpp>
#include <cusync/tile_order.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cusync {
namespace {

/// A word a tile of the largest grid, cleared by counting up instead of by writing: the exhaustive
/// tests visit 6.7 million tiles an order.
class tile_marks {
public:
  void clear() { ++round_; }
  bool mark(tile_coord tile, tile_extent grid) {
    auto& last = seen_[(tile.row * grid.cols + tile.col) * grid.slices + tile.slice];
    const bool fresh = last != round_;
    last = round_;
    return fresh;
  }

private:
  std::vector<u32> seen_ = std::vector<u32>(40 * 40 * 4, 0);
  u32 round_ = 0;
};

template <class Order> bool permutes(const Order& order, tile_extent grid, tile_marks& marks) {
  marks.clear();
  for (u32 index = 0; index < grid.count(); ++index) {
    const tile_coord tile = order.tile_at(index, grid);
    if (!grid.contains(tile) || !marks.mark(tile, grid)) return false;
  }
  return true;
}

template <class Order> void expect_permutation_of_every_grid(const Order& order) {
  tile_marks marks;
  for (u32 rows = 1; rows <= 40; ++rows)
    for (u32 cols = 1; cols <= 40; ++cols)
      for (u32 slices = 1; slices <= 4; ++slices)
        ASSERT_TRUE(permutes(order, {rows, cols, slices}, marks))
            << to_string(tile_extent{rows, cols, slices});
}

/// The order as text: "00 01 02": row and column of each tile, in the order in which they are taken.
template <class Order> std::string sequence(const Order& order, tile_extent grid) {
  std::string text;
  for (u32 index = 0; index < grid.count(); ++index) {
    const tile_coord tile = order.tile_at(index, grid);
    text += std::to_string(tile.row) + std::to_string(tile.col) + " ";
  }
  return text;
}

/// A user's own: row after row, every second one from right to left.
struct Serpentine {
  constexpr tile_coord tile_at(u32 index, tile_extent grid) const {
    const u32 row = index / grid.slices / grid.cols;
    const u32 col = index / grid.slices % grid.cols;
    return {row, row % 2 == 0 ? col : grid.cols - 1 - col, index % grid.slices};
  }
};
static_assert(tile_order<Serpentine>);

TEST(FieldCase7, RowMajorIsAPermutationOfEveryGrid) {
  expect_permutation_of_every_grid(RowMajor{});
}

TEST(FieldCase7, ColumnMajorIsAPermutationOfEveryGrid) {
  expect_permutation_of_every_grid(ColumnMajor{});
}

TEST(FieldCase7, StridedRowMajorIsAPermutationOfEveryGrid) {
  for (u32 stride = 1; stride <= 12; ++stride)
    expect_permutation_of_every_grid(StridedRowMajor{stride});
  for (const u32 beyond_all_columns : {41u, 0xffffffffu})
    expect_permutation_of_every_grid(StridedRowMajor{beyond_all_columns});
}

TEST(FieldCase7, GroupedRowMajorIsAPermutationOfEveryGrid) {
  for (const u32 rows : {1u, 2u, 3u, 5u, 8u, 16u, 39u, 41u, 0xffffffffu})
    expect_permutation_of_every_grid(GroupedRowMajor{rows});
}

TEST(FieldCase7, AUsersOrderIsCheckedLikeTheLibrarys) {
  expect_permutation_of_every_grid(Serpentine{});
  EXPECT_NO_THROW(require_permutation(Serpentine{}, {7, 5, 3}));
}

TEST(RowMajor, TakesRowAfterRow) {
  EXPECT_EQ(sequence(RowMajor{}, {2, 3, 1}), "00 01 02 10 11 12 ");
}

TEST(ColumnMajor, TakesColumnAfterColumn) {
  EXPECT_EQ(sequence(ColumnMajor{}, {2, 3, 1}), "00 10 01 11 02 12 ");
}

TEST(StridedRowMajor, TakesTogetherWhatLiesAStrideApart) {
  EXPECT_EQ(sequence(StridedRowMajor{2}, {2, 6, 1}), "00 02 04 01 03 05 10 12 14 11 13 15 ");
}

TEST(StridedRowMajor, GivesTheFirstResiduesTheColumnThatIsLeftOver) {
  EXPECT_EQ(sequence(StridedRowMajor{3}, {1, 7, 1}), "00 03 06 01 04 02 05 ");
  EXPECT_EQ(sequence(StridedRowMajor{9}, {1, 4, 1}), "00 01 02 03 ");
}

TEST(GroupedRowMajor, RunsDownTheColumnsOfAGroup) {
  EXPECT_EQ(sequence(GroupedRowMajor{2}, {3, 3, 1}), "00 10 01 11 02 12 20 21 22 ");
}

TEST(TileOrder, LibraryOrdersTakeTheSlicesOfATileInAscendingOrder) {
  const tile_extent grid{3, 4, 3};
  const auto slices_ascend = [&](const auto& order) {
    for (u32 index = 0; index < grid.count(); ++index) {
      const tile_coord tile = order.tile_at(index, grid);
      const tile_coord first = order.tile_at(index - index % grid.slices, grid);
      if (tile != tile_coord{first.row, first.col, index % grid.slices}) return false;
    }
    return true;
  };
  EXPECT_TRUE(slices_ascend(RowMajor{}));
  EXPECT_TRUE(slices_ascend(ColumnMajor{}));
  EXPECT_TRUE(slices_ascend(StridedRowMajor{3}));
  EXPECT_TRUE(slices_ascend(GroupedRowMajor{2}));
}

TEST(TileOrder, LargestGridIsIndexedWithoutWrapping) {
  const tile_extent grid{65536, 32767, 1};
  const u32 last = static_cast<u32>(grid.count() - 1);
  const tile_coord corner{65535, 32766, 0};
  EXPECT_EQ(RowMajor{}.tile_at(last, grid), corner);
  EXPECT_EQ(ColumnMajor{}.tile_at(last, grid), corner);
  EXPECT_EQ(StridedRowMajor{1000}.tile_at(last, grid), (tile_coord{65535, 31999, 0}));
  EXPECT_EQ(GroupedRowMajor{0xffffffff}.tile_at(last, grid), corner);
}

template <class Order> std::string order_refusal(const Order& order, tile_extent grid) {
  return refusal_of([&] { require_permutation(order, grid); });
}

struct AlwaysZero {
  tile_coord tile_at(u32, tile_extent) const { return {}; }
};

/// One too far: the last index gives a tile behind the last row.
struct OneTooFar {
  tile_coord tile_at(u32 index, tile_extent grid) const {
    return RowMajor{}.tile_at(index + 1, grid);
  }
};

/// A remap that is not one-to-one on a partial group: two positions of the last row give one tile.
struct Duplicate {
  tile_coord tile_at(u32 index, tile_extent grid) const {
    return RowMajor{}.tile_at(index + 1 == grid.count() ? index - 1 : index, grid);
  }
};

TEST(FieldCase7, ConstantOrderIsRefused) {
  EXPECT_EQ(
      order_refusal(AlwaysZero{}, {2, 3, 1}),
      "tile order is no permutation of the grid 2 x 3 x 1: index 1 gives tile (0, 0, 0), which "
      "an earlier index gave already; tile_at must return each tile of the grid once");
}

TEST(FieldCase7, OrderThatLeavesTheGridIsRefused) {
  EXPECT_EQ(
      order_refusal(OneTooFar{}, {2, 3, 2}),
      "tile order is no permutation of the grid 2 x 3 x 2: index 11 gives tile (2, 0, 0), which "
      "lies outside; tile_at must return each tile of the grid once");
}

TEST(FieldCase7, OrderThatTakesATileTwiceIsRefused) {
  EXPECT_EQ(
      order_refusal(Duplicate{}, {2, 3, 1}),
      "tile order is no permutation of the grid 2 x 3 x 1: index 5 gives tile (1, 1, 0), which "
      "an earlier index gave already; tile_at must return each tile of the grid once");
}

TEST(RequirePermutation, AcceptsTheOnlyOrderOfNoTiles) {
  EXPECT_NO_THROW(require_permutation(AlwaysZero{}, {0, 3, 1}));
}

TEST(RequirePermutation, RefusesParametersThatWouldDivideByZero) {
  EXPECT_EQ(order_refusal(StridedRowMajor{0}, {2, 3, 1}),
            "StridedRowMajor.stride is 0; it must be at least 1");
  EXPECT_EQ(order_refusal(GroupedRowMajor{0}, {2, 3, 1}),
            "GroupedRowMajor.group_rows is 0; it must be at least 1");
}

TEST(FieldCase29, OrderOfAGridWhoseTileCountWrapsIsRefused) {
  EXPECT_EQ(
      order_refusal(RowMajor{}, {65536, 32768, 2}),
      "tile order: grid 65536 x 32768 x 2 has more than 2147483647 tiles; use larger tiles or "
      "fewer slices");
}

} // namespace
} // namespace cusync
