// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sync_policy.hpp> // sync_policy

namespace cusync {

/// One semaphore for the tiles of a row that lie `stride` columns apart: the Q, K and V tiles of one
/// head. Goes with the order `StridedRowMajor{stride}`; derived from a `strided_dependence` it takes
/// over that stride, from any other it has stride 1, a semaphore a row.
///
/// A row has min(stride, cols) semaphores; where the stride does not divide the columns, the first
/// `cols % stride` of them guard one tile more.
struct StridedSync {
  tile_extent producer; ///< The producer's grid.
  u32 stride = 1;       ///< In tiles; at least 1.

  CUSYNC_HOST_DEVICE constexpr u32 semaphore_count() const { return producer.rows * a_row(); }
  CUSYNC_HOST_DEVICE constexpr u32 semaphore_of(tile_coord tile) const {
    return tile.row * a_row() + tile.col % stride;
  }
  CUSYNC_HOST_DEVICE constexpr u32 posts_expected(u32 semaphore) const {
    return ceil_div(producer.cols - semaphore % a_row(), stride) * producer.slices;
  }
  /// A range with this stride needs one semaphore a row, one whose residues ascend needs theirs;
  /// any other waits for the whole of its rows.
  CUSYNC_HOST_DEVICE constexpr semaphore_range guards(tile_range range) const {
    if (range.empty()) return {};
    const u32 row = range.row_begin * a_row();
    const u32 residue = range.col_begin % stride;
    const u32 step = range.col_stride % stride; // from the residue of a column to the next one's
    if (step == 0) return {row + residue, range.rows(), a_row(), 1, 0};
    if (residue + (range.cols() - 1) * step < a_row())
      return {row + residue, range.rows(), a_row(), range.cols(), step};
    return {row, range.rows(), a_row(), a_row(), 1};
  }

  /// Host only. Throws `invalid_argument`.
  void validate() const { require_positive(stride, "StridedSync.stride"); }

  template <class Dependence>
  requires requires(const Dependence& reads) { reads.column_stride(); }
  static constexpr StridedSync derived_from(const Dependence& reads) {
    return {reads.producer(), reads.column_stride()};
  }

  friend constexpr bool operator==(StridedSync, StridedSync) = default;

private:
  CUSYNC_HOST_DEVICE constexpr u32 a_row() const { return detail::min(stride, producer.cols); }
};

static_assert(derivable_policy<StridedSync>);
template <> inline constexpr bool covers_every_range<StridedSync> = true;

} // namespace cusync
