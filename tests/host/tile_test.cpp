// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include <cusync/tile.hpp>

#include <gtest/gtest.h>

namespace cusync {
namespace {

constexpr u32 u32_max = 0xffffffff;

TEST(CeilDiv, CountsAPartialTileAsATile) {
  EXPECT_EQ(ceil_div(0, 128), 0u);
  EXPECT_EQ(ceil_div(1, 128), 1u);
  EXPECT_EQ(ceil_div(128, 128), 1u);
  EXPECT_EQ(ceil_div(129, 128), 2u);
}

TEST(CeilDiv, DoesNotWrapAtTheEndOf32Bits) {
  EXPECT_EQ(ceil_div(u32_max, 1), u32_max);
  EXPECT_EQ(ceil_div(u32_max, 2), 0x80000000u);
  EXPECT_EQ(ceil_div(u32_max, u32_max), 1u);
  EXPECT_EQ(ceil_div(0x80000001u, 0x80000000u), 2u);
}

TEST(TileExtent, CountsBeyond32Bits) {
  EXPECT_EQ((tile_extent{65536, 32768, 2}.count()), u64{1} << 32);
  EXPECT_EQ((tile_extent{0, 7, 2}.count()), 0u);
}

TEST(TileExtent, ContainsItsTilesOnly) {
  constexpr tile_extent grid{2, 3, 4};
  EXPECT_TRUE(grid.contains({1, 2, 3}));
  EXPECT_FALSE(grid.contains({2, 2, 3}));
  EXPECT_FALSE(grid.contains({1, 3, 3}));
  EXPECT_FALSE(grid.contains({1, 2, 4}));
}

TEST(GridOf, CoversTheMatrixWithPartialTiles) {
  EXPECT_EQ(grid_of({200, 576}, {128, 128}), (tile_extent{2, 5, 1}));
  EXPECT_EQ(grid_of({256, 576}, {128, 64}, 3), (tile_extent{2, 9, 3}));
  EXPECT_EQ(grid_of({0, 576}, {128, 64}), (tile_extent{0, 9, 1}));
}

TEST(TileRange, HoldsEveryStrideThColumn) {
  constexpr tile_range range{
      .row_begin = 1, .row_end = 3, .col_begin = 2, .col_end = 9, .col_stride = 3};
  EXPECT_EQ(range.rows(), 2u);
  EXPECT_EQ(range.cols(), 3u); // 2, 5, 8
  EXPECT_TRUE(range.contains(2, 8));
  EXPECT_FALSE(range.contains(2, 7));
  EXPECT_FALSE(range.contains(3, 8));
  EXPECT_FALSE(range.contains(0, 8));
}

TEST(TileRange, IsEmptyWhereAnAxisIs) {
  EXPECT_TRUE(tile_range{}.empty());
  EXPECT_TRUE((tile_range{0, 3, 2, 2}.empty()));
  EXPECT_TRUE((tile_range{3, 1, 0, 2}.empty())); // an end before the beginning is no huge range
  EXPECT_FALSE((tile_range{0, 1, 0, 1}.empty()));
}

TEST(RequireCountable, AcceptsTheLargestGrid) {
  EXPECT_NO_THROW(require_countable({max_tiles, 1, 1}, "grid"));
  EXPECT_NO_THROW(require_countable({1, 32767, 65535}, "grid"));
  EXPECT_NO_THROW(require_countable({65536, 32767, 1}, "grid"));
}

TEST(RequireCountable, AcceptsGridsWithoutTiles) {
  EXPECT_NO_THROW(require_countable({0, u32_max, u32_max}, "grid"));
  EXPECT_NO_THROW(require_countable({u32_max, u32_max, 0}, "grid"));
}

TEST(FieldCase29, GridsWhoseTileCountWrapsAreRefused) {
  EXPECT_EQ(refusal_of([] {
              require_countable({65536, 32768, 2}, "producer grid");
            }),
            "producer grid 65536 x 32768 x 2 has more than 2147483647 tiles; use larger tiles or "
            "fewer slices");
  EXPECT_NE(refusal_of([] { require_countable({65536, 32768, 1}, "grid"); }), "accepted");
  // Wraps to 0 in 64 bits.
  EXPECT_NE(refusal_of([] { require_countable({1u << 31, 1u << 31, 4}, "grid"); }), "accepted");
  EXPECT_NE(refusal_of([] {
              require_countable({1, 1, static_cast<u32>(-1)}, "grid");
            }),
            "accepted");
}

TEST(FieldCase29, GridsAtTheLimitsOfALaunchAreCounted) {
  for (const u32 extent : {65535u, 65536u, 65537u}) {
    EXPECT_NO_THROW(require_countable({1, extent, 1}, "grid"));
    EXPECT_NO_THROW(require_countable({1, 1, extent}, "grid"));
    EXPECT_EQ(ceil_div(extent * 128, 128), extent);
  }
}

TEST(RequirePositive, NamesWhatIsZero) {
  EXPECT_EQ(refusal_of([] { require_positive(0, "StridedSync.stride"); }),
            "StridedSync.stride is 0; it must be at least 1");
  EXPECT_EQ(refusal_of([] {
              require_positive({128, 0}, "tile");
            }),
            "tile.cols is 0; it must be at least 1");
  EXPECT_NO_THROW(require_positive({1, 1}, "tile"));
}

} // namespace
} // namespace cusync
