// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile_order.hpp> // tile_order

namespace cusync {

/// Groups of `group_rows` rows; inside a group column after column.
///
/// Tiles taken at the same time then share columns of B as well as rows of A, so fewer bytes pass
/// through the L2. The last group may have fewer rows.
struct GroupedRowMajor {
  u32 group_rows = 8; ///< In tiles; at least 1.

  /// Precondition: `index < grid.count()`.
  CUSYNC_HOST_DEVICE constexpr tile_coord tile_at(u32 index, tile_extent grid) const {
    const auto [tile, slice] = split_slices(index, grid.slices);
    const u32 full_rows = detail::min(group_rows, grid.rows); // so that no group outgrows the grid
    const u32 group_tiles = full_rows * grid.cols;
    const u32 first_row = tile / group_tiles * full_rows;
    const u32 rows = detail::min(full_rows, grid.rows - first_row);
    const u32 position = tile % group_tiles;
    return {first_row + position % rows, position / rows, slice};
  }

  /// Host only. Throws `invalid_argument`.
  void validate() const { require_positive(group_rows, "GroupedRowMajor.group_rows"); }
};

static_assert(tile_order<GroupedRowMajor>);

} // namespace cusync
