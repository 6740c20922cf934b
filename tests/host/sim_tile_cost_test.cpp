// SPDX-License-Identifier: MIT
#include <cusync/sim/tile_cost.hpp>

#include <gmock/gmock.h>

namespace cusync::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// 100 SMs of 1 TFLOP/s, 1000 GB/s.
gpu round_numbers() {
  gpu device = find_gpu("H200");
  device.sms = 100;
  device.fp16_tflops = 100;
  device.hbm_gb_s = 1000;
  return device;
}

TEST(TileCost, IsTheLargerOfArithmeticAndMemory) {
  const gpu device = round_numbers();
  EXPECT_EQ(time_of(device, {.flops = 2e6, .bytes = 1e3}, 1, 100).ns, 2000u); // 1 TFLOP/s a block
  EXPECT_EQ(time_of(device, {.flops = 2e3, .bytes = 1e4}, 1, 100).ns, 1000u); // 10 GB/s a block
}

TEST(TileCost, IsSharedByTheBlocksOfAnSm) {
  const gpu device = round_numbers();
  EXPECT_EQ(time_of(device, {.flops = 2e6}, 2, 200).ns, 4000u);
  EXPECT_EQ(time_of(device, {.flops = 2e6}, 2, 100).ns, 2000u); // an SM has one of them
  EXPECT_EQ(time_of(device, {.flops = 2e6}, 2, 101).ns, 4000u); // some have two
}

TEST(TileCost, IsBoundByWhatAnSmCanMove) {
  const gpu device = round_numbers(); // an SM moves 64 bytes at 1.98 GHz
  const tile_time alone = time_of(device, {.bytes = 126'720}, 1, 1);
  EXPECT_EQ(alone.ns, 1000u);
  EXPECT_DOUBLE_EQ(alone.gb_s, 126.72);
}

TEST(TileCost, MayBeGiven) {
  const tile_time time = time_of(round_numbers(), {.flops = 1e9, .bytes = 1e9, .ns = 1500}, 1, 100);
  EXPECT_EQ(time.ns, 1500u);
  EXPECT_EQ(explain(time), "1.50 us a tile, as given");
}

TEST(TileCost, IsExplainedByItsInputs) {
  EXPECT_THAT(explain(time_of(round_numbers(), {.flops = 2e6, .bytes = 1e4}, 2, 500)),
              AllOf(HasSubstr("4.00 us a tile"),
                    HasSubstr("2 MFLOP at 0.5 TFLOP/s (2 blocks share an SM) = 4.00 us"),
                    HasSubstr("10 KB at 5 GB/s (200 blocks share the memory) = 2.00 us")));
}

} // namespace
} // namespace cusync::sim
