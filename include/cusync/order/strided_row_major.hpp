// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile_order.hpp> // tile_order

namespace cusync {

/// Row after row; inside a row first the columns 0, stride, 2 stride, ..., then 1, 1 + stride, ...
///
/// Completes together the tiles that share a `StridedSync` semaphore (Q, K and V of one head). A
/// permutation for every stride of at least 1, whether or not it divides the columns: the first
/// `cols % stride` residues have one column more than the others.
struct StridedRowMajor {
  u32 stride = 1; ///< In tiles; at least 1.

  /// Precondition: `index < grid.count()`.
  CUSYNC_HOST_DEVICE constexpr tile_coord tile_at(u32 index, tile_extent grid) const {
    const auto [tile, slice] = split_slices(index, grid.slices);
    return {tile / grid.cols, column_at(tile % grid.cols, grid.cols), slice};
  }

  /// Host only. Throws `invalid_argument`.
  void validate() const { require_positive(stride, "StridedRowMajor.stride"); }

private:
  CUSYNC_HOST_DEVICE constexpr u32 column_at(u32 position, u32 cols) const {
    const u32 shorter = cols / stride;
    const u32 longer_residues = cols % stride;
    const u32 in_longer = longer_residues * (shorter + 1);
    if (position < in_longer) return position / (shorter + 1) + position % (shorter + 1) * stride;
    const u32 rest = position - in_longer;
    return longer_residues + rest / shorter + rest % shorter * stride;
  }
};

static_assert(tile_order<StridedRowMajor>);

} // namespace cusync
