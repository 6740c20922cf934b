// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // tile_coord, tile_extent, tile_range, step_range

#include <concepts> // convertible_to, copyable

namespace cusync {

/// A dependence says which producer tiles a consumer tile reads through one operand.
///
/// `producer()` and `consumer()` are the two grids. `steps(tile)` are the steps that a consumer tile
/// visits, `reads(tile, step)` what one step reads, `reads(tile)` all that the tile reads. A range
/// may name more than is read, never less; the checker tells by how much. A tile that reads nothing
/// has an empty range.
///
/// May have a host-only `void validate() const`, which throws `invalid_argument` with value and remedy
/// for shapes that the others cannot work with. It is called before them.
template <class Dependence>
concept dependence = std::copyable<Dependence> &&
    requires(const Dependence reads, tile_coord tile, u32 step) {
  { reads.producer() } -> std::convertible_to<tile_extent>;
  { reads.consumer() } -> std::convertible_to<tile_extent>;
  { reads.steps(tile) } -> std::convertible_to<step_range>;
  { reads.reads(tile, step) } -> std::convertible_to<tile_range>;
  { reads.reads(tile) } -> std::convertible_to<tile_range>;
};

/// True for dependences in which all tiles of a row, of one slice, read the same: a checker then asks
/// once a row.
template <class Dependence> inline constexpr bool same_reads_in_a_row = false;

/// [begin, end) along one axis: elements or tiles, as the function that makes it says.
struct axis_range {
  u32 begin = 0;
  u32 end = 0;
};

/// The elements of blocks [first, last) of an axis of `extent` elements, blocks being `block` long.
/// 64-bit products: the end of the last block may pass 2^32 where the extent does not.
CUSYNC_HOST_DEVICE constexpr axis_range elements_of(u32 first, u32 last, u32 block, u32 extent) {
  return {static_cast<u32>(detail::min(u64{first} * block, u64{extent})),
          static_cast<u32>(detail::min(u64{last} * block, u64{extent}))};
}

/// The tiles that overlap `elements` of an axis, tiles being `tile` long; none for no elements.
CUSYNC_HOST_DEVICE constexpr axis_range tiles_over(axis_range elements, u32 tile) {
  if (elements.begin >= elements.end) return {};
  return {elements.begin / tile, ceil_div(elements.end, tile)};
}

/// The steps of slice `slice`, where `slices` slices share the steps [0, steps): each step is visited
/// once, and the first `steps % slices` slices visit one more than the others.
CUSYNC_HOST_DEVICE constexpr step_range share_of(u32 steps, u32 slice, u32 slices) {
  const u32 each = steps / slices;
  const u32 longer = steps % slices;
  const u32 begin = slice * each + detail::min(slice, longer);
  return {begin, begin + each + (slice < longer ? 1 : 0)};
}

} // namespace cusync
