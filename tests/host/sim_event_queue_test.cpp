// SPDX-License-Identifier: MIT
#include <cusync/sim/event_queue.hpp>
#include <cusync/sim/schedule.hpp>

#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <vector>

namespace cusync::sim {
namespace {

using key = std::tuple<u64, u32, u32>;

TEST(EventQueue, GivesWhatASortedSetGives) {
  random_source random(7);
  for (u32 round = 0; round < 200; ++round) {
    event_queue queue;
    std::set<key> sorted;
    for (u32 i = 0; i < 500; ++i) {
      const u32 pops = random.below(3);
      for (u32 j = 0; j < pops && !sorted.empty(); ++j) {
        const event next = queue.pop();
        ASSERT_EQ(key(next.time, next.tie, next.subject), *sorted.begin());
        sorted.erase(sorted.begin());
      }
      ASSERT_EQ(queue.empty(), sorted.empty());
      const event added{random.below(20), i, random.below(1000)};
      queue.push(added);
      sorted.emplace(added.time, added.tie, added.subject);
    }
    while (!sorted.empty()) {
      ASSERT_FALSE(queue.empty());
      ASSERT_EQ(queue.pop().tie, std::get<1>(*sorted.begin()));
      sorted.erase(sorted.begin());
    }
    ASSERT_TRUE(queue.empty());
  }
}

/// As in a simulation: a few delays behind the last event, ties rising, falling or random, and now and
/// then any time at all.
TEST(EventQueue, GivesWhatASortedSetGivesForFixedDelays) {
  random_source random(11);
  for (u32 round = 0; round < 300; ++round) {
    event_queue queue;
    std::set<key> sorted;
    const u32 delays = 1 + random.below(12), odd = random.below(3) == 0 ? 10 : 1000;
    u32 turn = 0;
    u64 now = 0;
    const auto push = [&](u64 time) {
      ++turn;
      const u32 ties[] = {turn, ~turn, static_cast<u32>(random.next())};
      const event added{time, ties[round % 3], turn};
      queue.push(added);
      sorted.emplace(added.time, added.tie, added.subject);
    };
    for (u32 i = 0; i < 40; ++i) push(random.below(5));
    for (u32 i = 0; i < 2000 && !sorted.empty(); ++i) {
      const event next = queue.pop();
      ASSERT_EQ(key(next.time, next.tie, next.subject), *sorted.begin());
      sorted.erase(sorted.begin());
      now = next.time;
      for (u32 more = random.below(sorted.size() < 60 ? 3 : 2); more > 0; --more)
        push(now + (random.below(odd) == 0 ? random.below(5000) : 100 * random.below(delays)));
      ASSERT_EQ(queue.empty(), sorted.empty());
    }
  }
}

TEST(EventQueue, BreaksTiesByTheirNumber) {
  event_queue queue;
  for (const u32 tie : {3u, 1u, 2u}) queue.push({5, tie, 0});
  for (const u32 tie : {1u, 2u, 3u}) EXPECT_EQ(queue.pop().tie, tie);
}

} // namespace
} // namespace cusync::sim
