// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sync_policy.hpp> // sync_policy

namespace cusync {

/// One semaphore a producer tile: the consumer starts on the first tile that is there, and looks at
/// as many semaphores as it reads tiles.
struct TileSync {
  tile_extent producer; ///< The producer's grid.

  CUSYNC_HOST_DEVICE constexpr u32 semaphore_count() const { return producer.rows * producer.cols; }
  CUSYNC_HOST_DEVICE constexpr u32 semaphore_of(tile_coord tile) const {
    return tile.row * producer.cols + tile.col;
  }
  CUSYNC_HOST_DEVICE constexpr u32 posts_expected(u32) const { return producer.slices; }
  CUSYNC_HOST_DEVICE constexpr semaphore_range guards(tile_range range) const {
    if (range.empty()) return {};
    return {range.row_begin * producer.cols + range.col_begin, range.rows(), producer.cols,
            range.cols(), range.col_stride};
  }

  friend constexpr bool operator==(TileSync, TileSync) = default;
};

static_assert(derivable_policy<TileSync>);
template <> inline constexpr bool covers_every_range<TileSync> = true;

} // namespace cusync
