// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/dependence.hpp> // dependence

namespace cusync {

/// Every consumer tile reads the whole producer: a softmax over all columns, a reduction.
struct grid_dependence {
  tile_extent producer_grid;
  tile_extent consumer_grid;

  CUSYNC_HOST_DEVICE constexpr tile_extent producer() const { return producer_grid; }
  CUSYNC_HOST_DEVICE constexpr tile_extent consumer() const { return consumer_grid; }
  CUSYNC_HOST_DEVICE constexpr step_range steps(tile_coord) const { return {0, 1}; }
  CUSYNC_HOST_DEVICE constexpr tile_range reads(tile_coord) const {
    return {0, producer_grid.rows, 0, producer_grid.cols};
  }
  CUSYNC_HOST_DEVICE constexpr tile_range reads(tile_coord tile, u32) const { return reads(tile); }

  /// Host only. Throws `invalid_argument`.
  void validate() const {
    require_countable(producer_grid, "grid_dependence: producer grid");
    require_countable(consumer_grid, "grid_dependence: consumer grid");
  }
};

static_assert(dependence<grid_dependence>);
template <> inline constexpr bool same_reads_in_a_row<grid_dependence> = true;

} // namespace cusync
