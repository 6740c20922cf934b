// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/errors.hpp> // invalid_argument
#include <cusync/tile.hpp>   // tile_coord, tile_extent, require_countable

#include <concepts> // convertible_to, copyable
#include <string>   // string, to_string
#include <vector>   // vector

namespace cusync {

/// An order says which tile is taken next: `tile_at(index, grid)` is a permutation of the grid's
/// tiles, index running over [0, grid.count()). The library's orders keep the slices of a tile
/// together and ascending, so that a slice waits only for slices claimed before it.
///
/// An order with parameters may have a host-only `void validate() const`, which throws
/// `invalid_argument` on those that `tile_at` cannot work with.
///
/// An order performs best where the producer completes first what the consumer reads first.
template <class Order>
concept tile_order = std::copyable<Order> &&
    requires(const Order order, u32 index, tile_extent grid) {
  { order.tile_at(index, grid) } -> std::convertible_to<tile_coord>;
};

/// An index of a grid with slices: the tile's, slices together and ascending, and the slice's.
struct sliced_index {
  u32 tile;
  u32 slice;
};

/// One slice, the usual case, needs no division: a block takes its tile before anything else.
CUSYNC_HOST_DEVICE constexpr sliced_index split_slices(u32 index, u32 slices) {
  if (slices == 1) return {index, 0};
  return {index / slices, index % slices};
}

/// Throws `invalid_argument` unless `order` visits every tile of `grid` exactly once.
/// Time and memory: linear in the tiles (one bit a tile).
template <tile_order Order> void require_permutation(const Order& order, tile_extent grid) {
  if constexpr (requires { order.validate(); }) order.validate();
  require_countable(grid, "tile order: grid");
  const u64 tiles = grid.count();
  std::vector<bool> seen(tiles, false);
  for (u64 index = 0; index < tiles; ++index) {
    const tile_coord tile = order.tile_at(static_cast<u32>(index), grid);
    const auto refuse = [&](const char* why) {
      throw invalid_argument("tile order is no permutation of the grid " + to_string(grid) +
                             ": index " + std::to_string(index) + " gives tile (" +
                             std::to_string(tile.row) + ", " + std::to_string(tile.col) + ", " +
                             std::to_string(tile.slice) + "), " + why +
                             "; tile_at must return each tile of the grid once");
    };
    if (!grid.contains(tile)) refuse("which lies outside");
    const u64 position = (u64{tile.row} * grid.cols + tile.col) * grid.slices + tile.slice;
    if (seen[position]) refuse("which an earlier index gave already");
    seen[position] = true;
  }
}

} // namespace cusync
