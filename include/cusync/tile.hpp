// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/config.hpp> // CUSYNC_HOST_DEVICE
#include <cusync/errors.hpp> // invalid_argument

#include <cstdint> // uint32_t, uint64_t
#include <string>  // string, to_string

namespace cusync {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Where a tile lies in its stage's grid. Counts tiles, never elements.
struct tile_coord {
  u32 row = 0;
  u32 col = 0;
  u32 slice = 0; ///< Split-K slice or batch index.
  friend constexpr bool operator==(tile_coord, tile_coord) = default;
};

/// A stage's grid, in tiles. A grid with a zero extent has no tiles and its stage is not launched.
struct tile_extent {
  u32 rows = 1;
  u32 cols = 1;
  u32 slices = 1;

  /// Tiles in the grid; 64 bits, since 65536 x 65536 wraps in 32. Exact below 2^64.
  CUSYNC_HOST_DEVICE constexpr u64 count() const { return u64{rows} * cols * slices; }

  CUSYNC_HOST_DEVICE constexpr bool contains(tile_coord tile) const {
    return tile.row < rows && tile.col < cols && tile.slice < slices;
  }

  friend constexpr bool operator==(tile_extent, tile_extent) = default;
};

/// The index of a tile in a list of its grid's: row after row, the slices of a tile together.
CUSYNC_HOST_DEVICE constexpr u32 index_of(tile_coord tile, tile_extent grid) {
  return (tile.row * grid.cols + tile.col) * grid.slices + tile.slice;
}
/// The tile at an index. Precondition: `index < grid.count()`.
CUSYNC_HOST_DEVICE constexpr tile_coord tile_of(u32 index, tile_extent grid) {
  const u32 tile = index / grid.slices;
  return {tile / grid.cols, tile % grid.cols, index % grid.slices};
}

/// Rows and columns in elements: of one tile, or of a whole matrix.
struct element_extent {
  u32 rows = 0;
  u32 cols = 0;
  friend constexpr bool operator==(element_extent, element_extent) = default;
};

/// Quotient rounded up. No sum that could wrap, and no 64-bit division, which is a call on a GPU.
/// Precondition: `divisor > 0`.
CUSYNC_HOST_DEVICE constexpr u32 ceil_div(u32 value, u32 divisor) {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

namespace detail { // not std::min, which needs --expt-relaxed-constexpr in a kernel
template <class T> CUSYNC_HOST_DEVICE constexpr T min(T a, T b) { return a < b ? a : b; }
} // namespace detail

/// The grid that covers `matrix` with tiles of `tile` elements, partial tiles included.
CUSYNC_HOST_DEVICE constexpr tile_extent grid_of(element_extent matrix, element_extent tile,
                                                 u32 slices = 1) {
  return {ceil_div(matrix.rows, tile.rows), ceil_div(matrix.cols, tile.cols), slices};
}

/// Producer tiles in rows [row_begin, row_end) and columns col_begin, col_begin + col_stride, ...
/// below col_end, with all their slices: a reader needs the finished tile.
struct tile_range {
  u32 row_begin = 0;
  u32 row_end = 0;
  u32 col_begin = 0;
  u32 col_end = 0;
  u32 col_stride = 1; ///< At least 1.

  CUSYNC_HOST_DEVICE constexpr u32 rows() const {
    return row_end > row_begin ? row_end - row_begin : 0;
  }
  CUSYNC_HOST_DEVICE constexpr u32 cols() const {
    return col_end > col_begin ? ceil_div(col_end - col_begin, col_stride) : 0;
  }
  CUSYNC_HOST_DEVICE constexpr bool empty() const { return rows() == 0 || cols() == 0; }

  CUSYNC_HOST_DEVICE constexpr bool contains(u32 row, u32 col) const {
    return row >= row_begin && row < row_end && col >= col_begin && col < col_end &&
           (col - col_begin) % col_stride == 0;
  }

  friend constexpr bool operator==(tile_range, tile_range) = default;
};

/// The steps [begin, end) that a consumer tile visits: its k-tiles.
struct step_range {
  u32 begin = 0;
  u32 end = 0;
};

/// Names an input of a stage: `constexpr cusync::operand<0> A;`. Both sides of an edge use it.
template <int Index> struct operand {};

/// The largest grid: indices, tickets and posts are 32-bit, and compared through signed differences.
inline constexpr u32 max_tiles = 0x7fffffff;

/// "rows x cols x slices".
inline std::string to_string(tile_extent grid) {
  return std::to_string(grid.rows) + " x " + std::to_string(grid.cols) + " x " +
         std::to_string(grid.slices);
}

/// "(row, col, slice)".
inline std::string to_string(tile_coord tile) {
  return "(" + std::to_string(tile.row) + ", " + std::to_string(tile.col) + ", " +
         std::to_string(tile.slice) + ")";
}

/// Whether the product is at most `max_tiles`. Divides, because it can wrap in 64 bits too.
constexpr bool countable(u32 a, u32 b, u32 c) { return c == 0 || u64{a} * b <= max_tiles / c; }

/// Throws `invalid_argument` if `grid` has more than `max_tiles` tiles.
inline void require_countable(tile_extent grid, const std::string& what) {
  if (countable(grid.rows, grid.cols, grid.slices)) return;
  throw invalid_argument(what + " " + to_string(grid) + " has more than " +
                         std::to_string(max_tiles) + " tiles; use larger tiles or fewer slices");
}

/// Throws `invalid_argument` if `value` is 0.
inline void require_positive(u32 value, const std::string& what) {
  if (value == 0) throw invalid_argument(what + " is 0; it must be at least 1");
}

/// Throws `invalid_argument` if a tile of this shape would hold no element.
inline void require_positive(element_extent tile, const std::string& what) {
  require_positive(tile.rows, what + ".rows");
  require_positive(tile.cols, what + ".cols");
}

} // namespace cusync
