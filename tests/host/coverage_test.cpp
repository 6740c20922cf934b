// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include <cusync/coverage.hpp>
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/dependence/tile_dependence.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

#include <gmock/gmock.h>

namespace cusync {

/// A policy that is `TileSync` but for what a test changes.
struct broken_policy {
  TileSync sound;
  u32 count_less = 0;      ///< Semaphores that it forgets to ask for.
  u32 expected_more = 0;   ///< Posts that it counts and nobody makes.
  bool first_only = false; ///< It waits for the first tile of a range alone.
  u32 guards_shifted = 0;  ///< It waits for others.

  u32 semaphore_count() const { return sound.semaphore_count() - count_less; }
  u32 semaphore_of(tile_coord tile) const { return sound.semaphore_of(tile); }
  u32 posts_expected(u32 semaphore) const {
    return sound.posts_expected(semaphore) + expected_more;
  }
  semaphore_range guards(tile_range range) const {
    semaphore_range all = sound.guards(range);
    all.begin += guards_shifted;
    if (first_only && !range.empty()) all.outer = all.inner = 1;
    return all;
  }
  friend bool operator==(const broken_policy&, const broken_policy&) = default;
};
static_assert(sync_policy<broken_policy>);

namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr row_dependence rows{.matrix = {6, 8},
                              .producer_tile = {2, 4},
                              .consumer_rows = 3,
                              .step_cols = 8,
                              .consumer_cols = 1,
                              .producer_slices = 2};

TEST(Coverage, HoldsForTheLibrarysPolicies) {
  EXPECT_EQ(refusal_of([] { require_coverage(TileSync{rows.producer()}, rows); }), "accepted");
  EXPECT_EQ(refusal_of([] { require_coverage(RowSync{rows.producer()}, rows); }), "accepted");
  EXPECT_EQ(refusal_of([] { require_reached(TileSync{rows.producer()}, rows.producer()); }),
            "accepted");
}

TEST(Coverage, FindsATileThatIsReadWithoutAWait) {
  const broken_policy policy{.sound = {rows.producer()}, .first_only = true};
  EXPECT_THAT(refusal_of([&] { require_coverage(policy, rows); }),
              AllOf(HasSubstr("does not cover its dependence"),
                    HasSubstr("consumer tile (0, 0, 0)"), HasSubstr("producer tile (0, 1, 0)"),
                    HasSubstr("semaphore 1"), HasSubstr("guards must name it")));
}

TEST(Coverage, FindsAWaitForASemaphoreThatDoesNotExist) {
  const broken_policy policy{.sound = {rows.producer()}, .guards_shifted = 6};
  EXPECT_THAT(refusal_of([&] { require_coverage(policy, rows); }),
              AllOf(HasSubstr("waits for semaphore 6 of 6"),
                    HasSubstr("guards must stay below semaphore_count")));
}

TEST(Coverage, FindsAReadOutsideOfTheProducer) {
  struct overreaching : tile_dependence {
    tile_range reads(tile_coord) const { return {0, 4, 0, 1, 1}; }
    tile_range reads(tile_coord tile, u32) const { return reads(tile); }
  };
  const overreaching reads{{.matrix = {6, 4}, .producer_tile = {2, 4}, .consumer_tile = {2, 4}}};
  const broken_policy policy{.sound = {tile_extent{4, 1, 1}}}; // enough semaphores for what is read
  EXPECT_THAT(refusal_of([&] { require_coverage(policy, reads); }),
              AllOf(HasSubstr("producer tile (3, 0, 0) outside the grid 3 x 1 x 1"),
                    HasSubstr("mend the dependence")));
}

TEST(Reached, FindsPostsThatAreMiscounted) {
  const broken_policy policy{.sound = {rows.producer()}, .expected_more = 1};
  EXPECT_THAT(refusal_of([&] { require_reached(policy, rows.producer()); }),
              AllOf(HasSubstr("expects 3 posts on semaphore 0"), HasSubstr("3 x 2 x 2 makes 2")));
}

TEST(Reached, FindsAPostToASemaphoreThatDoesNotExist) {
  const broken_policy policy{.sound = {rows.producer()}, .count_less = 1};
  EXPECT_THAT(refusal_of([&] { require_reached(policy, rows.producer()); }),
              AllOf(HasSubstr("posts tile (2, 1, 0) to semaphore 5 of 5"),
                    HasSubstr("below semaphore_count")));
}

} // namespace
} // namespace cusync
