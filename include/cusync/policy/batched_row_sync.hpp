// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sync_policy.hpp> // sync_policy

namespace cusync {

/// One semaphore for `batch` rows of producer tiles: fewer semaphores than `RowSync`, a coarser
/// start. The last batch may have fewer rows.
struct BatchedRowSync {
  tile_extent producer; ///< The producer's grid.
  u32 batch = 2;        ///< Rows a semaphore; at least 1.

  CUSYNC_HOST_DEVICE constexpr u32 semaphore_count() const {
    return ceil_div(producer.rows, batch);
  }
  CUSYNC_HOST_DEVICE constexpr u32 semaphore_of(tile_coord tile) const { return tile.row / batch; }
  CUSYNC_HOST_DEVICE constexpr u32 posts_expected(u32 semaphore) const {
    return detail::min(batch, producer.rows - semaphore * batch) * producer.cols * producer.slices;
  }
  CUSYNC_HOST_DEVICE constexpr semaphore_range guards(tile_range range) const {
    if (range.rows() == 0) return {}; // the columns, dear to compute, do not matter
    const u32 first = range.row_begin / batch;
    return {first, 1, 0, ceil_div(range.row_end, batch) - first, 1};
  }

  /// Host only. Throws `invalid_argument`.
  void validate() const { require_positive(batch, "BatchedRowSync.batch"); }

  friend constexpr bool operator==(BatchedRowSync, BatchedRowSync) = default;
};

static_assert(derivable_policy<BatchedRowSync>);
template <> inline constexpr bool covers_every_range<BatchedRowSync> = true;

} // namespace cusync
