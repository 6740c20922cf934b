// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/kernels/gemm_host.hpp> // gemm_arguments, gemm_a, gemm_tile
#include <cusync/sim/checked_view.hpp>  // checked_input, checked_output

namespace cusync {

/// Lets `gemm_host` read and write on the virtual GPU through checked views: a read of A that no wait
/// covers, and a store outside of the tile, throw.
struct sim_gemm_views {
  gemm_tile tile;
  element_extent producer_tile{1, 1}; ///< Of the stage that writes A, where one does.

  template <class Stage>
  auto a(const Stage& stage, tile_coord at, const gemm_arguments& args) const {
    return sim::checked_input<half, Stage, 0>(stage, gemm_a, at, args.a, {args.m, args.k},
                                              producer_tile);
  }
  auto c(tile_coord at, const gemm_arguments& args) const {
    return sim::checked_output<half>(at, args.c, {args.m, args.n}, {tile.m, tile.n});
  }
};

} // namespace cusync
