// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/dependence.hpp> // dependence

namespace cusync {

/// Consumer tile (r, c) reads producer tiles (r, c), (r, c + stride), (r, c + 2 stride), ...: the
/// thirds of a fused Q, K, V projection, `stride` tiles apart.
struct strided_dependence {
  tile_extent producer_grid; ///< `stride` divides its columns.
  u32 stride;                ///< In tiles; the consumer's grid has `stride` columns.

  CUSYNC_HOST_DEVICE constexpr tile_extent producer() const { return producer_grid; }
  CUSYNC_HOST_DEVICE constexpr tile_extent consumer() const {
    return {producer_grid.rows, stride, 1};
  }
  CUSYNC_HOST_DEVICE constexpr step_range steps(tile_coord) const {
    return {0, ceil_div(producer_grid.cols, stride)};
  }
  /// Step s reads the s-th third.
  CUSYNC_HOST_DEVICE constexpr tile_range reads(tile_coord tile, u32 step) const {
    const u32 col = tile.col + step * stride;
    return {tile.row, tile.row + 1, col, detail::min(col + 1, producer_grid.cols), stride};
  }
  CUSYNC_HOST_DEVICE constexpr tile_range reads(tile_coord tile) const {
    return {tile.row, tile.row + 1, tile.col, producer_grid.cols, stride};
  }
  /// What `StridedSync` is derived from.
  CUSYNC_HOST_DEVICE constexpr u32 column_stride() const { return stride; }

  /// Host only. Throws `invalid_argument`.
  void validate() const {
    require_positive(stride, "strided_dependence.stride");
    if (producer_grid.cols % stride != 0)
      throw invalid_argument("strided_dependence.stride " + std::to_string(stride) +
                             " does not divide the producer's " +
                             std::to_string(producer_grid.cols) +
                             " columns of tiles; choose a tile width with which it does");
    require_countable(producer_grid, "strided_dependence: producer grid");
    require_countable(consumer(), "strided_dependence: consumer grid");
  }
};

static_assert(dependence<strided_dependence>);

} // namespace cusync
