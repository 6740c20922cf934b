// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/policy/tile_sync.hpp> // TileSync

namespace cusync {

/// One semaphore a tile of pixels x channels, for chains of convolutions.
///
/// It guards tiles as `TileSync` does; what makes a convolution right is the dependence: declare it
/// with `conv2d_dependence`, whose range holds the halo, and every tile under the filter is waited
/// for. (Mapping an output tile to the one input tile of the same index, as a GEMM may, would miss
/// the neighbouring pixel tiles.)
struct Conv2DTileSync : TileSync {
  friend constexpr bool operator==(Conv2DTileSync, Conv2DTileSync) = default;
};

static_assert(derivable_policy<Conv2DTileSync>);
template <> inline constexpr bool covers_every_range<Conv2DTileSync> = true;

} // namespace cusync
