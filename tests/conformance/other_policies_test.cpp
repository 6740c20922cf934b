// SPDX-License-Identifier: MIT
// Attention, convolution, elementwise passes and reductions, as gemm_policies_test.cpp does for GEMMs.

#include "conform.hpp"

#include <cusync/dependence/conv2d_dependence.hpp>
#include <cusync/dependence/grid_dependence.hpp>
#include <cusync/dependence/strided_dependence.hpp>
#include <cusync/dependence/tile_dependence.hpp>
#include <cusync/policy/conv2d_tile_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/strided_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

namespace cusync::test {
namespace {

template <class Policy, class Dependence>
pair_case<Policy, Dependence> derived(const Dependence& reads, element_extent matrix,
                                      element_extent tile) {
  return {derive<Policy>(reads), reads, matrix, tile};
}

TEST(Conformance, StridedSyncOfQKV) {
  conform<by_counter, by_counter>(
      derived<StridedSync>(strided_dependence{{4, 9, 1}, 3}, {8, 18}, {2, 2}));
}

TEST(Conformance, Conv2DTileSyncWithHalo) {
  const conv2d_dependence conv{.images = 2,
                               .height = 5,
                               .width = 4,
                               .channels = 6,
                               .producer_tile = {7, 4},
                               .consumer_pixels = 6,
                               .consumer_cols = 2,
                               .step_channels = 3};
  conform(derived<Conv2DTileSync>(conv, {2 * 5 * 4, 6}, conv.producer_tile));
}

TEST(Conformance, TileSyncOfUnequalTiles) {
  const tile_dependence tiles{
      .matrix = {11, 13}, .producer_tile = {4, 3}, .consumer_tile = {3, 5}, .producer_slices = 3};
  conform<by_index, by_counter>(derived<TileSync>(tiles, tiles.matrix, tiles.producer_tile));
}

TEST(Conformance, RowSyncOfAWholeGrid) {
  conform<by_counter>(derived<RowSync>(grid_dependence{{5, 4, 1}, {3, 2, 1}}, {10, 8}, {2, 2}));
}

} // namespace
} // namespace cusync::test
