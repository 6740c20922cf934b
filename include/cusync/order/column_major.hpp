// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile_order.hpp> // tile_order

namespace cusync {

/// Column after column, rows ascending: completes columns first.
struct ColumnMajor {
  /// Precondition: `index < grid.count()`.
  CUSYNC_HOST_DEVICE constexpr tile_coord tile_at(u32 index, tile_extent grid) const {
    const auto [tile, slice] = split_slices(index, grid.slices);
    return {tile % grid.rows, tile / grid.rows, slice};
  }
};

static_assert(tile_order<ColumnMajor>);

} // namespace cusync
