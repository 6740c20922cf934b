// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile_order.hpp> // tile_order

namespace cusync {

/// Row after row, columns ascending: completes the rows that a GEMM's consumer reads, in order.
struct RowMajor {
  /// Precondition: `index < grid.count()`.
  CUSYNC_HOST_DEVICE constexpr tile_coord tile_at(u32 index, tile_extent grid) const {
    const auto [tile, slice] = split_slices(index, grid.slices);
    return {tile / grid.cols, tile % grid.cols, slice};
  }
};

static_assert(tile_order<RowMajor>);

} // namespace cusync
