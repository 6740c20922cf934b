// SPDX-License-Identifier: MIT
// Every policy between two GEMMs x every order on both sides x every mode x adversarial schedules.

#include "conform.hpp"

#include <cusync/dependence/row_dependence.hpp>
#include <cusync/policy/batched_row_sync.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/no_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/strided_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

namespace cusync::test {
namespace {

/// A user's own policy: one semaphore for all tiles on an antidiagonal.
struct DiagonalSync {
  tile_extent producer;

  u32 semaphore_count() const { return producer.rows + producer.cols - 1; }
  u32 semaphore_of(tile_coord tile) const { return tile.row + tile.col; }
  u32 posts_expected(u32 diagonal) const {
    const u32 first = diagonal < producer.cols ? 0 : diagonal - producer.cols + 1;
    return (std::min(diagonal + 1, producer.rows) - first) * producer.slices;
  }
  semaphore_range guards(tile_range range) const {
    if (range.empty()) return {};
    const u32 first = range.row_begin + range.col_begin;
    return {first, 1, 0, range.row_end + range.col_end - 1 - first, 1};
  }
  friend bool operator==(DiagonalSync, DiagonalSync) = default;
};
static_assert(derivable_policy<DiagonalSync>);

/// A of a GEMM, 13 x 22 elements: unequal tile heights, partial tiles, split-K on both sides.
constexpr row_dependence rows{.matrix = {13, 22},
                              .producer_tile = {4, 5},
                              .consumer_rows = 3,
                              .step_cols = 4,
                              .consumer_cols = 3,
                              .producer_slices = 2,
                              .consumer_slices = 2};
template <class Policy> pair_case<Policy, row_dependence> over_rows(Policy policy) {
  return {policy, rows, rows.matrix, rows.producer_tile};
}

TEST(Conformance, NoSyncInSerial) {
  conform<by_counter, by_counter>(over_rows(NoSync{rows.producer()}), {serial});
}
TEST(Conformance, GridSync) { conform<by_index, by_counter>(over_rows(GridSync{rows.producer()})); }
TEST(Conformance, TileSync) { conform(over_rows(TileSync{rows.producer()})); }
TEST(Conformance, TileSyncWithClaims) {
  conform<by_counter, by_counter>(over_rows(TileSync{rows.producer()}));
}
TEST(Conformance, RowSync) { conform(over_rows(RowSync{rows.producer()})); }
TEST(Conformance, RowSyncWithClaims) {
  conform<by_counter, by_counter>(over_rows(RowSync{rows.producer()}));
}
TEST(Conformance, BatchedRowSync) {
  conform<by_counter>(over_rows(BatchedRowSync{rows.producer(), 3}));
}
TEST(Conformance, StridedSync) {
  conform<by_index, by_counter>(over_rows(StridedSync{rows.producer(), 2}));
}
TEST(Conformance, AUsersOwnPolicy) { conform(over_rows(DiagonalSync{rows.producer()})); }

} // namespace
} // namespace cusync::test
