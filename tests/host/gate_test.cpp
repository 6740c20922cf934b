// SPDX-License-Identifier: MIT
#include <cusync/gate.hpp>

#include <gtest/gtest.h>

namespace cusync {
namespace {

// Field case 6: (SMs, blocks an SM of each kernel, blocks of each kernel).
TEST(Gate, IsNeedlessWhereBothStagesFitInOneWave) {
  EXPECT_TRUE(single_wave(132, 1, 2, 66, 66));
  EXPECT_FALSE(single_wave(132, 1, 2, 66, 67));
  EXPECT_FALSE(single_wave(78, 1, 1, 66, 66));
  EXPECT_FALSE(single_wave(80, 2, 2, 96, 96));
  EXPECT_TRUE(single_wave(80, 2, 2, 72, 48));
  EXPECT_FALSE(single_wave(1, 1, 1, 1, 1));
}

constexpr sm_capacity sm{.blocks = 4, .threads = 1024, .registers = 0, .shared_bytes = 100};

TEST(Gate, CountsBlocksThatShutAnotherOut) {
  EXPECT_EQ(blocks_that_shut_out(sm, {.threads = 128}, {.threads = 128}), 4u); // places
  EXPECT_EQ(blocks_that_shut_out(sm, {.threads = 128}, {.threads = 768}), 3u); // threads
  EXPECT_EQ(blocks_that_shut_out(sm, {.shared_bytes = 30}, {.shared_bytes = 50}),
            2u); // shared memory
  EXPECT_EQ(blocks_that_shut_out(sm, {.threads = 1, .shared_bytes = 1}, {.shared_bytes = 100}),
            1u); // any at all
}

TEST(Gate, IsNeededByAsManyWaitersAsCanFillEverySm) {
  const block_footprint half{.shared_bytes = 50};
  EXPECT_TRUE(live_without_gate(10, sm, half, half, 19));
  EXPECT_FALSE(live_without_gate(10, sm, half, half, 20));
}

// What fits in one wave, whatever the two kernels ask for, also passes the exact condition.
TEST(Gate, OfOneWaveIsAlsoProvedNeedless) {
  for (u32 producer = 1; producer <= 100; ++producer)
    for (u32 consumer = 1; consumer <= 100; ++consumer) {
      const block_footprint first{.threads = 32, .shared_bytes = producer};
      const block_footprint second{.threads = 256, .shared_bytes = consumer};
      const u32 first_a_sm = detail::min(4u, 100 / producer);
      const u32 second_a_sm = detail::min(4u, 100 / consumer);
      for (u64 waiting = 1; waiting <= 12 && single_wave(3, first_a_sm, second_a_sm, 1, waiting);
           ++waiting)
        ASSERT_TRUE(live_without_gate(3, sm, first, second, waiting))
            << producer << ' ' << consumer << ' ' << waiting;
    }
}

} // namespace
} // namespace cusync
