// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/dependence.hpp> // dependence

namespace cusync {

/// A consumer tile reads the elements that it writes: elementwise passes, a residual, a bias added
/// later. The two sides may use tiles of different shapes.
struct tile_dependence {
  element_extent matrix;        ///< Elements of the matrix between the two stages.
  element_extent producer_tile; ///< Elements of one producer tile.
  element_extent consumer_tile; ///< Elements of one consumer tile.
  u32 producer_slices = 1;
  u32 consumer_slices = 1;

  CUSYNC_HOST_DEVICE constexpr tile_extent producer() const {
    return grid_of(matrix, producer_tile, producer_slices);
  }
  CUSYNC_HOST_DEVICE constexpr tile_extent consumer() const {
    return grid_of(matrix, consumer_tile, consumer_slices);
  }
  CUSYNC_HOST_DEVICE constexpr step_range steps(tile_coord) const { return {0, 1}; }
  CUSYNC_HOST_DEVICE constexpr tile_range reads(tile_coord tile) const {
    const axis_range rows = span(tile.row, consumer_tile.rows, producer_tile.rows, matrix.rows);
    const axis_range cols = span(tile.col, consumer_tile.cols, producer_tile.cols, matrix.cols);
    return {rows.begin, rows.end, cols.begin, cols.end};
  }
  CUSYNC_HOST_DEVICE constexpr tile_range reads(tile_coord tile, u32) const { return reads(tile); }

  /// Host only. Throws `invalid_argument`.
  void validate() const {
    require_positive(producer_tile, "tile_dependence.producer_tile");
    require_positive(consumer_tile, "tile_dependence.consumer_tile");
    require_positive(producer_slices, "tile_dependence.producer_slices");
    require_positive(consumer_slices, "tile_dependence.consumer_slices");
    require_countable(producer(), "tile_dependence: producer grid");
    require_countable(consumer(), "tile_dependence: consumer grid");
  }

private:
  CUSYNC_HOST_DEVICE static constexpr axis_range span(u32 index, u32 consumer, u32 producer,
                                                      u32 extent) {
    return tiles_over(elements_of(index, index + 1, consumer, extent), producer);
  }
};

static_assert(dependence<tile_dependence>);

} // namespace cusync
