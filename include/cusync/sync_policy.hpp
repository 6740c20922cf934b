// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // tile_coord, tile_extent, tile_range

#include <concepts> // convertible_to, copyable, equality_comparable

namespace cusync {

/// Semaphores begin + i * outer_stride + j * inner_stride, for i < outer and j < inner.
struct semaphore_range {
  u32 begin = 0;
  u32 outer = 0;
  u32 outer_stride = 0;
  u32 inner = 0;
  u32 inner_stride = 0;

  CUSYNC_HOST_DEVICE constexpr u32 count() const { return outer * inner; }

  /// The semaphore at `position` in [0, count()).
  CUSYNC_HOST_DEVICE constexpr u32 at(u32 position) const {
    if (outer == 1) return begin + position * inner_stride; // no division where one row is read
    return begin + position / inner * outer_stride + position % inner * inner_stride;
  }

  friend constexpr bool operator==(semaphore_range, semaphore_range) = default;
};

/// A policy says which semaphore guards which producer tiles: the trade between how early a
/// consumer may start and how many semaphores it must look at.
///
/// - `semaphore_count()`: semaphores to allocate.
/// - `semaphore_of(tile)`: the one that `post(tile)` increments, below `semaphore_count()`.
/// - `posts_expected(semaphore)`: posts a run after which all its tiles are complete. Every slice of
///   a split-K tile posts.
/// - `guards(range)`: the semaphores to wait for before the producer tiles of `range` are read. For
///   a range that is not empty it holds `semaphore_of(tile)` of each of its tiles and slices.
///
/// All are pure and also run on the host, so the checker replays what the kernel executes. A policy
/// with parameters may have a host-only `void validate() const`, which throws `invalid_argument` and
/// is called before the others. A chain refuses a policy that breaks these rules for its dependence.
/// Two policies that compare equal share one set of semaphores.
template <class Policy>
concept sync_policy = std::copyable<Policy> && std::equality_comparable<Policy> &&
    requires(const Policy policy, tile_coord tile, u32 semaphore, tile_range range) {
  { policy.semaphore_count() } -> std::convertible_to<u32>;
  { policy.semaphore_of(tile) } -> std::convertible_to<u32>;
  { policy.posts_expected(semaphore) } -> std::convertible_to<u32>;
  { policy.guards(range) } -> std::convertible_to<semaphore_range>;
};

/// True for policies whose `guards` cover every range by construction, as the library's do (tested
/// exhaustively): a chain then need not walk all reads to know it.
template <class Policy> inline constexpr bool covers_every_range = false;

/// A policy that the producer's grid alone determines; `CuSync::dependency<Policy>` makes it.
template <class Policy>
concept derivable_policy = sync_policy<Policy> && requires(tile_extent producer) {
  Policy{producer};
};

/// Derives `Policy` from a declared dependence: through `Policy::derived_from(reads)` where the policy
/// takes more from it than the producer's grid.
template <derivable_policy Policy, class Dependence>
constexpr Policy derive(const Dependence& reads) {
  if constexpr (requires { Policy::derived_from(reads); })
    return Policy::derived_from(reads);
  else
    return Policy{reads.producer()};
}

} // namespace cusync
