// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include <cusync/dependence.hpp>
#include <cusync/dependence/grid_dependence.hpp>
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/dependence/strided_dependence.hpp>
#include <cusync/dependence/tile_dependence.hpp>

#include <gtest/gtest.h>

#include <bitset>
#include <string>

namespace cusync {
namespace {

using tile_set = std::bitset<128>; // of the producer's tiles, slices left out

u32 position_of(u32 row, u32 col, tile_extent grid) { return row * grid.cols + col; }

/// The tiles of a range; all of 128 where it leaves the grid, which no brute force gives.
tile_set tiles_of(tile_range range, tile_extent grid) {
  tile_set tiles;
  if (range.empty()) return tiles;
  if (range.row_end > grid.rows || range.col_end > grid.cols) return tiles.set();
  for (u32 row = 0; row < grid.rows; ++row)
    for (u32 col = 0; col < grid.cols; ++col)
      if (range.contains(row, col)) tiles.set(position_of(row, col, grid));
  return tiles;
}

/// Half-open rows and columns of a matrix, in elements. Cut off at the matrix by whoever reads.
struct elements {
  u32 row_begin, row_end, col_begin, col_end;
};

/// The producer's tiles that hold them, element after element.
tile_set tiles_under(elements read, element_extent matrix, element_extent tile) {
  const tile_extent grid = grid_of(matrix, tile);
  tile_set tiles;
  for (u32 row = read.row_begin; row < read.row_end && row < matrix.rows; ++row)
    for (u32 col = read.col_begin; col < read.col_end && col < matrix.cols; ++col)
      tiles.set(position_of(row / tile.rows, col / tile.cols, grid));
  return tiles;
}

template <class Visit> void for_each_extent(u32 first, u32 last, Visit visit) {
  for (u32 rows = first; rows <= last; ++rows)
    for (u32 cols = first; cols <= last; ++cols) visit(element_extent{rows, cols});
}

/// What is wrong with one consumer tile of a GEMM: each step against its elements, and the whole tile
/// against its steps.
std::string tile_fault(const row_dependence& gemm, tile_coord tile) {
  const tile_extent grid = gemm.producer();
  const u32 row = tile.row * gemm.consumer_rows;
  const step_range steps = gemm.steps(tile);
  tile_set all;
  for (u32 step = steps.begin; step < steps.end; ++step) {
    const u32 col = step * gemm.step_cols;
    const tile_set read = tiles_under({row, row + gemm.consumer_rows, col, col + gemm.step_cols},
                                      gemm.matrix, gemm.producer_tile);
    if (read.none()) return "a step reads nothing";
    if (tiles_of(gemm.reads(tile, step), grid) != read) return "wrong step";
    all |= read;
  }
  return tiles_of(gemm.reads(tile), grid) == all ? "" : "wrong tile";
}

/// Whether the slices visit every step once, in order.
bool slices_share_the_steps(const row_dependence& gemm) {
  u32 next = 0;
  for (u32 slice = 0; slice < gemm.consumer_slices; ++slice) {
    const step_range steps = gemm.steps({0, 0, slice});
    if (steps.begin != next || steps.end < steps.begin) return false;
    next = steps.end;
  }
  return next == ceil_div(gemm.matrix.cols, gemm.step_cols);
}

std::string fault_of(const row_dependence& gemm) {
  if (!slices_share_the_steps(gemm)) return "a step is missed or visited twice";
  for (u32 row = 0; row < gemm.consumer().rows; ++row)
    for (u32 slice = 0; slice < gemm.consumer_slices; ++slice) {
      const std::string fault = tile_fault(gemm, {row, 0, slice});
      if (!fault.empty()) return fault;
    }
  return "";
}

TEST(RowDependence, ReadsExactlyTheTilesUnderItsElements) {
  for_each_extent(0, 9, [](element_extent matrix) {
    for_each_extent(1, 4, [&](element_extent producer_tile) {
      for_each_extent(1, 4, [&](element_extent consumer) {
        for (const u32 slices : {1u, 2u, 3u, 4u, 7u})
          ASSERT_EQ(fault_of({.matrix = matrix,
                              .producer_tile = producer_tile,
                              .consumer_rows = consumer.rows,
                              .step_cols = consumer.cols,
                              .consumer_cols = 1,
                              .consumer_slices = slices}),
                    "")
              << matrix.rows << " x " << matrix.cols << " in " << producer_tile.rows << " x "
              << producer_tile.cols << ", read in " << consumer.rows << " x " << consumer.cols
              << " by " << slices << " slices";
      });
    });
  });
}

TEST(RowDependence, SaysWhatASplitGemmReads) {
  constexpr row_dependence gemm{.matrix = {200, 576},
                                .producer_tile = {128, 128},
                                .consumer_rows = 64,
                                .step_cols = 64,
                                .consumer_cols = 7,
                                .producer_slices = 3,
                                .consumer_slices = 2};
  static_assert(gemm.producer() == tile_extent{2, 5, 3});
  static_assert(gemm.consumer() == tile_extent{4, 7, 2});
  static_assert(gemm.reads({1, 6, 0}) == tile_range{0, 1, 0, 3}); // columns 0 to 319
  static_assert(gemm.reads({3, 6, 1}) == tile_range{1, 2, 2, 5}); // columns 320 to 575
  static_assert(gemm.reads({2, 0, 1}, 8) == tile_range{1, 2, 4, 5});
}

TEST(FieldCase29, MoreSlicesThanStepsLeaveSomeNothingToRead) {
  constexpr row_dependence gemm{.matrix = {64, 100},
                                .producer_tile = {64, 64},
                                .consumer_rows = 64,
                                .step_cols = 64,
                                .consumer_cols = 1,
                                .consumer_slices = 5};
  EXPECT_EQ(fault_of(gemm), "");
  EXPECT_TRUE(gemm.reads({0, 0, 4}).empty());
}

TEST(FieldCase29, ZeroExtentsReadNothing) {
  row_dependence gemm{.matrix = {64, 0},
                      .producer_tile = {64, 64},
                      .consumer_rows = 64,
                      .step_cols = 64,
                      .consumer_cols = 2};
  EXPECT_NO_THROW(gemm.validate());
  EXPECT_EQ(gemm.producer().count(), 0u);
  EXPECT_EQ(gemm.consumer().count(), 2u); // they still write zeros, and post
  EXPECT_TRUE(gemm.reads({}).empty());
  gemm.matrix = {0, 64};
  EXPECT_NO_THROW(gemm.validate());
  EXPECT_EQ(gemm.consumer().count(), 0u);
}

/// The tiles that hold elements [begin, end), end cut off at the extent, counted in 64 bits.
axis_range wide_tiles_over(u64 begin, u64 end, u64 extent, u64 tile) {
  end = end < extent ? end : extent;
  return {static_cast<u32>(begin / tile), static_cast<u32>((end + tile - 1) / tile)};
}

// The last tile of a matrix near 2^32 ends beyond 32 bits; wrapped, it would read nothing.
TEST(FieldCase29, LastTileOfAMatrixNearTheEndOf32BitsIsRead) {
  for (const u32 extent : {0x7fffffffu, 0x80000000u, 0x80000001u, 0xffffff81u, 0xffffffffu})
    for (const u32 tile : {64u, 128u, 192u, 0x80000000u, 0xffffffffu})
      for (const u32 block : {64u, 96u, 256u, 0x80000000u, 0xffffffffu}) {
        const u32 last = ceil_div(extent, block) - 1;
        const axis_range wanted =
            wide_tiles_over(u64{last} * block, (u64{last} + 1) * block, extent, tile);
        const row_dependence rows{{extent, 1}, {tile, 1}, block, 1, 1};
        const row_dependence steps{{1, extent}, {1, tile}, 1, block, 1};
        const tile_dependence tiles{{1, extent}, {1, tile}, {1, block}};
        EXPECT_EQ(rows.reads({last, 0, 0}), (tile_range{wanted.begin, wanted.end, 0, 1}));
        EXPECT_EQ(steps.reads({0, 0, 0}, last), (tile_range{0, 1, wanted.begin, wanted.end}));
        EXPECT_EQ(tiles.reads({0, last, 0}), (tile_range{0, 1, wanted.begin, wanted.end}));
        EXPECT_EQ(steps.reads({0, 0, 0}), (tile_range{0, 1, 0, ceil_div(extent, tile)}));
      }
}

TEST(FieldCase29, MatrixOf2To31ElementsIsAccepted) {
  constexpr row_dependence gemm{.matrix = {175000, 12288},
                                .producer_tile = {128, 128},
                                .consumer_rows = 128,
                                .step_cols = 64,
                                .consumer_cols = 96};
  EXPECT_NO_THROW(gemm.validate());
  EXPECT_EQ(gemm.reads({1367, 0, 0}), (tile_range{1367, 1368, 0, 96}));
}

TEST(ShareOf, DoesNotWrapAtTheEndOf32Bits) {
  const u32 steps = 0xffffffff;
  for (const u32 slices : {1u, 2u, 7u, 65535u, 0xffffffffu}) {
    EXPECT_EQ(share_of(steps, 0, slices).begin, 0u);
    EXPECT_EQ(share_of(steps, slices - 1, slices).end, steps);
    EXPECT_EQ(share_of(steps, slices / 2, slices).end,
              share_of(steps, slices / 2 + 1, slices).begin);
  }
}

TEST(TileDependence, ReadsExactlyTheTilesUnderItsElements) {
  const auto check = [](const tile_dependence& pass, tile_coord tile) {
    const u32 row = tile.row * pass.consumer_tile.rows;
    const u32 col = tile.col * pass.consumer_tile.cols;
    const elements written{row, row + pass.consumer_tile.rows, col, col + pass.consumer_tile.cols};
    const tile_set read = tiles_under(written, pass.matrix, pass.producer_tile);
    return tiles_of(pass.reads(tile), pass.producer()) == read &&
           pass.reads(tile, 0) == pass.reads(tile);
  };
  for_each_extent(0, 8, [&](element_extent matrix) {
    for_each_extent(1, 4, [&](element_extent producer_tile) {
      for_each_extent(1, 4, [&](element_extent consumer_tile) {
        const tile_dependence pass{matrix, producer_tile, consumer_tile};
        for (u32 row = 0; row < pass.consumer().rows; ++row)
          for (u32 col = 0; col < pass.consumer().cols; ++col)
            ASSERT_TRUE(check(pass, {row, col, 0}))
                << matrix.rows << " x " << matrix.cols << " in " << producer_tile.rows << " x "
                << producer_tile.cols << ", read in " << consumer_tile.rows << " x "
                << consumer_tile.cols << ", tile " << row << ", " << col;
      });
    });
  });
}

TEST(StridedDependence, ReadsEveryStrideThTileOfItsRow) {
  for (u32 cols = 1; cols <= 12; ++cols)
    for (u32 stride = 1; stride <= cols; ++stride) {
      if (cols % stride != 0) continue;
      const strided_dependence thirds{{3, cols, 2}, stride};
      ASSERT_EQ(thirds.consumer(), (tile_extent{3, stride, 1}));
      for (u32 row = 0; row < 3; ++row)
        for (u32 col = 0; col < stride; ++col) {
          tile_set all;
          for (u32 step = 0; step < thirds.steps({row, col, 0}).end; ++step) {
            const tile_set one = tiles_of(thirds.reads({row, col, 0}, step), thirds.producer());
            ASSERT_EQ(one,
                      tile_set{}.set(position_of(row, col + step * stride, thirds.producer())));
            all |= one;
          }
          ASSERT_EQ(all.count(), cols / stride);
          ASSERT_EQ(tiles_of(thirds.reads({row, col, 0}), thirds.producer()), all);
        }
    }
}

TEST(GridDependence, ReadsTheWholeProducer) {
  constexpr grid_dependence softmax{{3, 5, 2}, {7, 1, 1}};
  static_assert(softmax.producer() == tile_extent{3, 5, 2});
  static_assert(softmax.consumer() == tile_extent{7, 1, 1});
  EXPECT_EQ(softmax.steps({6, 0, 0}).end, 1u);
  EXPECT_EQ(tiles_of(softmax.reads({6, 0, 0}), softmax.producer()).count(), 15u);
  EXPECT_EQ(softmax.reads({6, 0, 0}, 0), softmax.reads({6, 0, 0}));
}

template <class Dependence> std::string refusal_of_shape(const Dependence& shape) {
  return refusal_of([&] { shape.validate(); });
}

constexpr row_dependence gemm_shape{.matrix = {256, 256},
                                    .producer_tile = {128, 128},
                                    .consumer_rows = 128,
                                    .step_cols = 64,
                                    .consumer_cols = 2};

TEST(FieldCase29, GemmShapesThatWouldDivideByZeroAreRefused) {
  EXPECT_EQ(refusal_of_shape(gemm_shape), "accepted");
  const auto refused = [](auto change) {
    row_dependence gemm = gemm_shape;
    change(gemm);
    return refusal_of_shape(gemm);
  };
  EXPECT_EQ(refused([](auto& gemm) { gemm.producer_tile.rows = 0; }),
            "row_dependence.producer_tile.rows is 0; it must be at least 1");
  EXPECT_EQ(refused([](auto& gemm) { gemm.producer_tile.cols = 0; }),
            "row_dependence.producer_tile.cols is 0; it must be at least 1");
  EXPECT_EQ(refused([](auto& gemm) { gemm.consumer_rows = 0; }),
            "row_dependence.consumer_rows is 0; it must be at least 1");
  EXPECT_EQ(refused([](auto& gemm) { gemm.step_cols = 0; }),
            "row_dependence.step_cols is 0; it must be at least 1");
  EXPECT_EQ(refused([](auto& gemm) { gemm.producer_slices = 0; }),
            "row_dependence.producer_slices is 0; it must be at least 1");
  EXPECT_EQ(refused([](auto& gemm) { gemm.consumer_slices = 0; }),
            "row_dependence.consumer_slices is 0; it must be at least 1");
}

TEST(FieldCase29, GridsOfAGemmThatWrapAreRefused) {
  row_dependence gemm = gemm_shape;
  gemm.consumer_slices = static_cast<u32>(-1);
  EXPECT_EQ(refusal_of_shape(gemm),
            "row_dependence: consumer grid 2 x 2 x 4294967295 has more than 2147483647 tiles; use "
            "larger tiles or fewer slices");
  gemm = {.matrix = {65536, 32768},
          .producer_tile = {1, 1},
          .consumer_rows = 128,
          .step_cols = 64,
          .consumer_cols = 1,
          .producer_slices = 2};
  EXPECT_EQ(refusal_of_shape(gemm),
            "row_dependence: producer grid 65536 x 32768 x 2 has more than 2147483647 tiles; use "
            "larger tiles or fewer slices");
}

TEST(FieldCase29, OtherShapesThatCannotRunAreRefused) {
  EXPECT_EQ(refusal_of_shape(tile_dependence{{8, 8}, {2, 2}, {4, 4}}), "accepted");
  EXPECT_EQ(refusal_of_shape(tile_dependence{{8, 8}, {0, 2}, {4, 4}}),
            "tile_dependence.producer_tile.rows is 0; it must be at least 1");
  EXPECT_EQ(refusal_of_shape(tile_dependence{{8, 8}, {2, 2}, {4, 0}}),
            "tile_dependence.consumer_tile.cols is 0; it must be at least 1");
  EXPECT_EQ(refusal_of_shape(tile_dependence{{8, 8}, {2, 2}, {4, 4}, 0, 1}),
            "tile_dependence.producer_slices is 0; it must be at least 1");
  EXPECT_EQ(refusal_of_shape(tile_dependence{{8, 8}, {2, 2}, {4, 4}, 1, 0}),
            "tile_dependence.consumer_slices is 0; it must be at least 1");
  EXPECT_EQ(refusal_of_shape(tile_dependence{{65536, 65536}, {1, 1}, {4, 4}}),
            "tile_dependence: producer grid 65536 x 65536 x 1 has more than 2147483647 tiles; use "
            "larger tiles or fewer slices");
  EXPECT_EQ(refusal_of_shape(grid_dependence{{1, 1, 1}, {65536, 32768, 2}}),
            "grid_dependence: consumer grid 65536 x 32768 x 2 has more than 2147483647 tiles; use "
            "larger tiles or fewer slices");
}

TEST(FieldCase29, StrideThatDoesNotDivideTheColumnsIsRefused) {
  EXPECT_EQ(refusal_of_shape(strided_dependence{{2, 12, 1}, 4}), "accepted");
  EXPECT_EQ(refusal_of_shape(strided_dependence{{2, 12, 1}, 0}),
            "strided_dependence.stride is 0; it must be at least 1");
  EXPECT_EQ(
      refusal_of_shape(strided_dependence{{2, 12, 1}, 5}),
      "strided_dependence.stride 5 does not divide the producer's 12 columns of tiles; choose "
      "a tile width with which it does");
}

} // namespace
} // namespace cusync
