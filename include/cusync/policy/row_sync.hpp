// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sync_policy.hpp> // sync_policy

namespace cusync {

/// One semaphore a row of producer tiles: a consumer that reads a whole row waits once.
struct RowSync {
  tile_extent producer; ///< The producer's grid.

  CUSYNC_HOST_DEVICE constexpr u32 semaphore_count() const { return producer.rows; }
  CUSYNC_HOST_DEVICE constexpr u32 semaphore_of(tile_coord tile) const { return tile.row; }
  CUSYNC_HOST_DEVICE constexpr u32 posts_expected(u32) const {
    return producer.cols * producer.slices;
  }
  CUSYNC_HOST_DEVICE constexpr semaphore_range guards(tile_range range) const {
    if (range.rows() == 0) return {}; // the columns, dear to compute, do not matter
    return {range.row_begin, 1, 0, range.rows(), 1};
  }

  friend constexpr bool operator==(RowSync, RowSync) = default;
};

static_assert(derivable_policy<RowSync>);
template <> inline constexpr bool covers_every_range<RowSync> = true;

} // namespace cusync
