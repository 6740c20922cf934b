// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sync_policy.hpp> // sync_policy, tile_coord, tile_extent, tile_range

/// Two semaphores a row of producer tiles, one for its left half and one for its right: a consumer
/// begins on half a row, where `RowSync` waits for all of it and `TileSync` looks at every tile.
struct HalfRowSync {
  cusync::tile_extent producer; ///< The producer's grid.

  CUSYNC_HOST_DEVICE constexpr cusync::u32 semaphore_count() const { return producer.rows * 2; }
  CUSYNC_HOST_DEVICE constexpr cusync::u32 semaphore_of(cusync::tile_coord tile) const {
    return tile.row * 2 + half_of(tile.col);
  }
  CUSYNC_HOST_DEVICE constexpr cusync::u32 posts_expected(cusync::u32 semaphore) const {
    const cusync::u32 left = producer.cols / 2;
    return (semaphore % 2 == 0 ? left : producer.cols - left) * producer.slices;
  }
  CUSYNC_HOST_DEVICE constexpr cusync::semaphore_range guards(cusync::tile_range range) const {
    if (range.empty()) return {};
    const cusync::u32 first = half_of(range.col_begin);
    const cusync::u32 halves = half_of(range.col_end - 1) - first + 1;
    return {range.row_begin * 2 + first, range.rows(), 2, halves, 1};
  }

  friend constexpr bool operator==(HalfRowSync, HalfRowSync) = default;

private:
  CUSYNC_HOST_DEVICE constexpr cusync::u32 half_of(cusync::u32 col) const {
    return col < producer.cols / 2 ? 0 : 1;
  }
};

static_assert(cusync::derivable_policy<HalfRowSync>); // CuSync::dependency<HalfRowSync> makes one
