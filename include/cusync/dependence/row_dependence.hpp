// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/dependence.hpp> // dependence

namespace cusync {

/// The A operand of a GEMM: a consumer tile reads whole rows of the producer's matrix, `step_cols`
/// columns a step. The two sides may use tiles of different heights; the consumer may split K, its
/// slices then share the steps (`share_of`).
struct row_dependence {
  element_extent matrix;        ///< The matrix between the stages: M rows, K columns.
  element_extent producer_tile; ///< Elements of one producer tile.
  u32 consumer_rows;            ///< Rows of one consumer tile.
  u32 step_cols;                ///< Columns that the consumer reads a step: its k-tile.
  u32 consumer_cols;            ///< Column tiles of the consumer's grid.
  u32 producer_slices = 1;
  u32 consumer_slices = 1;

  CUSYNC_HOST_DEVICE constexpr tile_extent producer() const {
    return grid_of(matrix, producer_tile, producer_slices);
  }
  CUSYNC_HOST_DEVICE constexpr tile_extent consumer() const {
    return {ceil_div(matrix.rows, consumer_rows), consumer_cols, consumer_slices};
  }
  CUSYNC_HOST_DEVICE constexpr step_range steps(tile_coord tile) const {
    return share_of(ceil_div(matrix.cols, step_cols), tile.slice, consumer_slices);
  }
  CUSYNC_HOST_DEVICE constexpr tile_range reads(tile_coord tile, u32 step) const {
    return visited_by(tile, {step, step + 1});
  }
  CUSYNC_HOST_DEVICE constexpr tile_range reads(tile_coord tile) const {
    return visited_by(tile, steps(tile));
  }

  /// Host only. Throws `invalid_argument`.
  void validate() const {
    require_positive(producer_tile, "row_dependence.producer_tile");
    require_positive(consumer_rows, "row_dependence.consumer_rows");
    require_positive(step_cols, "row_dependence.step_cols");
    require_positive(producer_slices, "row_dependence.producer_slices");
    require_positive(consumer_slices, "row_dependence.consumer_slices");
    require_countable(producer(), "row_dependence: producer grid");
    require_countable(consumer(), "row_dependence: consumer grid");
  }

private:
  CUSYNC_HOST_DEVICE constexpr tile_range visited_by(tile_coord tile, step_range visited) const {
    const axis_range rows = rows_under(tile.row);
    const axis_range cols = tiles_over(
        elements_of(visited.begin, visited.end, step_cols, matrix.cols), producer_tile.cols);
    return {rows.begin, rows.end, cols.begin, cols.end};
  }
  /// Equal heights, the usual case, need no division: a wait is on the consumer's critical path.
  CUSYNC_HOST_DEVICE constexpr axis_range rows_under(u32 row) const {
    if (consumer_rows == producer_tile.rows) return {row, row + 1};
    return tiles_over(elements_of(row, row + 1, consumer_rows, matrix.rows), producer_tile.rows);
  }
};

static_assert(dependence<row_dependence>);
template <> inline constexpr bool same_reads_in_a_row<row_dependence> = true;

} // namespace cusync
