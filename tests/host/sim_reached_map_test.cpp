// SPDX-License-Identifier: MIT
#include <cusync/sim/reached_map.hpp>
#include <cusync/sim/schedule.hpp>

#include <gtest/gtest.h>

namespace cusync::sim {
namespace {

TEST(ReachedMap, CountsTheSemaphoresThatLeadARange) {
  reached_map map;
  const u32 set = map.add_set(200);
  for (u32 semaphore = 10; semaphore < 150; ++semaphore) map.add(set, semaphore, 5);
  EXPECT_EQ(map.leading(set, 10, 100, 5), 100u);
  EXPECT_EQ(map.leading(set, 10, 190, 5), 140u);
  EXPECT_EQ(map.leading(set, 149, 2, 5), 1u);
  EXPECT_EQ(map.leading(set, 9, 5, 5), 0u);
  EXPECT_EQ(map.leading(set, 10, 100, 4), 0u); // not to be seen yet
}

/// Whatever was posted: never one that is not reached or not visible yet.
TEST(ReachedMap, NeverCountsOneThatIsNotThere) {
  random_source random(3);
  for (u32 round = 0; round < 100; ++round) {
    reached_map map;
    const u32 count = 1 + random.below(300);
    map.add_set(random.below(70));
    const u32 set = map.add_set(count);
    std::vector<u64> visible(count, ~u64{0});
    for (u32 i = 0; i < 2 * count; ++i) {
      const u32 semaphore = random.below(count);
      visible[semaphore] = i;
      map.add(set, semaphore, i);
      const u32 first = random.below(count), length = random.below(count - first) + 1;
      const u32 found = map.leading(set, first, length, i);
      ASSERT_LE(found, length);
      for (u32 at = first; at < first + found; ++at) ASSERT_LE(visible[at], i);
      // All is visible by now, so that nothing may be left out either.
      if (found < length) {
        ASSERT_EQ(visible[first + found], ~u64{0});
      }
    }
  }
}

TEST(ReachedMap, IsCompleteOnceAllAreSeen) {
  reached_map map;
  const u32 set = map.add_set(2);
  map.add(set, 0, 10);
  map.add(set, 0, 10); // posted once more
  EXPECT_FALSE(map.complete(set, 100));
  map.add(set, 1, 20);
  EXPECT_FALSE(map.complete(set, 19));
  EXPECT_TRUE(map.complete(set, 20));
}

TEST(ReachedMap, ForgetsTheRunBefore) {
  reached_map map;
  const u32 set = map.add_set(2);
  map.add(set, 0, 10);
  map.add(set, 1, 10);
  map.enter(0);
  EXPECT_TRUE(map.complete(set, 10));
  map.enter(1);
  EXPECT_FALSE(map.complete(set, 10));
  EXPECT_EQ(map.leading(set, 0, 2, 10), 0u);
}

} // namespace
} // namespace cusync::sim
