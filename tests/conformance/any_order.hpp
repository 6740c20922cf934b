// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/order/column_major.hpp>
#include <cusync/order/grouped_row_major.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/order/strided_row_major.hpp>

namespace cusync::test {

/// A user's own order: every other row backwards, as a plough goes.
struct Serpentine {
  CUSYNC_HOST_DEVICE constexpr tile_coord tile_at(u32 index, tile_extent grid) const {
    const tile_coord tile = RowMajor{}.tile_at(index, grid);
    return tile.row % 2 == 0 ? tile : tile_coord{tile.row, grid.cols - 1 - tile.col, tile.slice};
  }
};

/// Any of the orders, so that one kernel is compiled for all of them. It calls their very code.
struct any_order {
  enum kind : u32 { row_major, column_major, strided, grouped, serpentine } is = row_major;

  CUSYNC_HOST_DEVICE constexpr tile_coord tile_at(u32 index, tile_extent grid) const {
    switch (is) {
    case row_major:
      return RowMajor{}.tile_at(index, grid);
    case column_major:
      return ColumnMajor{}.tile_at(index, grid);
    case strided:
      return StridedRowMajor{2}.tile_at(index, grid);
    case grouped:
      return GroupedRowMajor{2}.tile_at(index, grid);
    case serpentine:
      break;
    }
    return Serpentine{}.tile_at(index, grid);
  }
};
static_assert(tile_order<any_order>);

inline constexpr any_order all_orders[] = {
    {any_order::row_major}, {any_order::column_major}, {any_order::strided},
    {any_order::grouped},   {any_order::serpentine},
};

} // namespace cusync::test
