// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sync_policy.hpp> // sync_policy

namespace cusync {

/// The whole producer: what a kernel boundary means, as one more policy of an edge.
///
/// Right wherever the others are too fine: full waves, a consumer that reads everything, a buffer
/// that is written again. In mode `pdl` a consumer launched right behind its producer executes
/// `griddepcontrol.wait` and needs no semaphore.
struct GridSync {
  tile_extent producer; ///< The producer's grid.

  CUSYNC_HOST_DEVICE constexpr u32 semaphore_count() const { return 1; }
  CUSYNC_HOST_DEVICE constexpr u32 semaphore_of(tile_coord) const { return 0; }
  CUSYNC_HOST_DEVICE constexpr u32 posts_expected(u32) const {
    return static_cast<u32>(producer.count());
  }
  CUSYNC_HOST_DEVICE constexpr semaphore_range guards(tile_range range) const {
    if (range.empty()) return {};
    return {0, 1, 0, 1, 0};
  }

  friend constexpr bool operator==(GridSync, GridSync) = default;
};

static_assert(derivable_policy<GridSync>);
template <> inline constexpr bool covers_every_range<GridSync> = true;

} // namespace cusync
