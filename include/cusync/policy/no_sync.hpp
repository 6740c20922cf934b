// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sync_policy.hpp> // sync_policy

namespace cusync {

/// No semaphore at all: right only where launch order alone keeps the two stages apart (mode
/// `serial`), or where nothing is read. A chain refuses it anywhere else.
struct NoSync {
  tile_extent producer; ///< The producer's grid.

  CUSYNC_HOST_DEVICE constexpr u32 semaphore_count() const { return 0; }
  CUSYNC_HOST_DEVICE constexpr u32 semaphore_of(tile_coord) const { return 0; }
  CUSYNC_HOST_DEVICE constexpr u32 posts_expected(u32) const { return 0; }
  CUSYNC_HOST_DEVICE constexpr semaphore_range guards(tile_range) const { return {}; }

  friend constexpr bool operator==(NoSync, NoSync) = default;
};

static_assert(derivable_policy<NoSync>);

} // namespace cusync
