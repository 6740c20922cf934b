// SPDX-License-Identifier: MIT
#include <cusync/sim/waves.hpp>

#include <gtest/gtest.h>

namespace cusync::sim {
namespace {

TEST(Waves, StreamOrderEndsEachStagesLastWaveAlone) {
  const chain_waves waves = waves_of({{192, 160}, {384, 160}});
  EXPECT_EQ(waves.in_stream_order, 5u);
  EXPECT_DOUBLE_EQ(waves.overlapped, 3.6);
  EXPECT_EQ(waves.whole_overlapped(), 4u);
}

/// 0.1 + 0.2 + 0.7 is a little more than 1 in binary; it is one wave.
TEST(Waves, FractionsThatAddUpToAWholeWaveAreOne) {
  const chain_waves waves = waves_of({{1, 10}, {2, 10}, {7, 10}});
  EXPECT_EQ(waves.whole_overlapped(), 1u);
  EXPECT_EQ(waves_of({{1, 10}, {2, 10}, {7, 10}, {1, 1000000}}).whole_overlapped(), 2u);
}

TEST(Waves, UtilisationCountsThePlacesOfWholeWaves) {
  EXPECT_DOUBLE_EQ((wave_load{384, 160}.utilisation()), 0.8);
  EXPECT_DOUBLE_EQ((wave_load{320, 160}.utilisation()), 1);
  EXPECT_DOUBLE_EQ((wave_load{0, 160}.utilisation()), 1);
  EXPECT_EQ((wave_load{0, 160}.whole_waves()), 0u);
}

} // namespace
} // namespace cusync::sim
