// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include <cusync/sim/gpu.hpp>
#include <cusync/sim/machine.hpp>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace cusync::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Gpu, IsFoundByTheStartOfItsName) {
  EXPECT_EQ(find_gpu("h200").name, "H200");
  EXPECT_EQ(find_gpu("A100").name, "A100 SXM4 80GB");
  EXPECT_EQ(find_gpu("a100-sxm4").name, "A100 SXM4 80GB");
  EXPECT_EQ(find_gpu("rtx4090").name, "RTX 4090");
}

TEST(Gpu, ThatIsUnknownIsRefusedWithTheKnownOnes) {
  for (const char* name : {"K80", "", "--"})
    EXPECT_THAT(refusal_of([&] { find_gpu(name); }),
                AllOf(HasSubstr("'" + std::string(name) + "'"), HasSubstr("V100 SXM2, A100"),
                      HasSubstr("B200")));
}

TEST(Gpu, TableIsThatOfTheDataSheets) {
  std::ifstream file(CUSYNC_TEST_DATA "/gpus.json");
  const auto sheets = nlohmann::json::parse(file);
  const auto& granularity = sheets["granularity"];
  EXPECT_EQ(granularity["registers_per_warp_unit"], gpu::register_unit);
  EXPECT_EQ(granularity["warps_allocated_in"], gpu::partitions);
  ASSERT_EQ(sheets["gpus"].size(), std::size(built_in_gpus));
  for (std::size_t i = 0; i < std::size(built_in_gpus); ++i) {
    const gpu& ours = built_in_gpus[i];
    const auto& sheet = sheets["gpus"][i];
    const std::string cc = sheet["cc"];
    SCOPED_TRACE(ours.name);
    EXPECT_EQ(sheet["name"], ours.name);
    EXPECT_EQ(cc, std::to_string(ours.compute_capability / 10) + "." +
                      std::to_string(ours.compute_capability % 10));
    EXPECT_EQ(sheet["sms"], ours.sms);
    EXPECT_EQ(sheet["max_threads_per_sm"], ours.threads_per_sm);
    EXPECT_EQ(sheet["max_blocks_per_sm"], ours.blocks_per_sm);
    EXPECT_EQ(sheet["regs_per_sm"], ours.registers_per_sm);
    EXPECT_EQ(sheet["smem_per_sm"], ours.shared_per_sm);
    EXPECT_EQ(sheet["smem_per_block_optin"], ours.shared_per_block);
    EXPECT_EQ(sheet["smem_reserved_per_block"], ours.shared_reserved);
    EXPECT_EQ(granularity["smem_unit_bytes"][cc], ours.shared_unit);
    EXPECT_EQ(sheet["boost_mhz"], ours.boost_mhz);
    EXPECT_EQ(sheet["hbm_gb_s"], ours.hbm_gb_s);
    EXPECT_EQ(sheet["fp16_tflops"], ours.fp16_tflops);
    EXPECT_EQ(sheet["l2_mb"], ours.l2_mb);
  }
}

/// Blocks an SM of the H200 holds, as the CUDA occupancy calculator gives them.
u32 on_h200(u32 threads, u32 registers, u32 shared_bytes) {
  return occupancy(find_gpu("H200"), {threads, registers, shared_bytes});
}

TEST(Occupancy, IsLimitedBySharedMemoryWithItsReserve) {
  EXPECT_EQ(on_h200(128, 32, 200 * 1024), 1u);
  EXPECT_EQ(on_h200(128, 32, 113 * 1024), 2u); // 2 x (113 + 1) KB are all of the 228
  EXPECT_EQ(on_h200(128, 32, 113 * 1024 + 1), 1u);
  EXPECT_EQ(on_h200(128, 32, 227 * 1024), 1u);
  EXPECT_EQ(on_h200(128, 32, 227 * 1024 + 1), 0u);
  EXPECT_EQ(occupancy(find_gpu("V100"), {128, 32, 48 * 1024}), 2u); // no reserve there
}

TEST(Occupancy, IsLimitedByRegistersAWarp) {
  EXPECT_EQ(on_h200(128, 255, 0), 2u); // 8192 a warp, 8 warps
  EXPECT_EQ(on_h200(256, 128, 0), 2u);
  EXPECT_EQ(on_h200(128, 168, 0),
            3u); // 5376 a warp: 3 in each of 4 partitions, where 65536 hold 12.2
  EXPECT_EQ(on_h200(384, 168, 0), 1u);
  EXPECT_EQ(on_h200(32, 168, 0), 12u);
  EXPECT_EQ(on_h200(512, 65, 0), 1u); // 9 x 256 a warp
  EXPECT_EQ(on_h200(512, 64, 0), 2u);
}

TEST(Occupancy, IsLimitedByThreadsAndBlocks) {
  EXPECT_EQ(on_h200(1024, 32, 0), 2u);
  EXPECT_EQ(on_h200(33, 16, 0), 32u); // two warps each
  EXPECT_EQ(on_h200(32, 16, 0), 32u);
  EXPECT_EQ(occupancy(find_gpu("RTX 4090"), {32, 16, 0}), 24u);
  EXPECT_EQ(occupancy(find_gpu("RTX 4090"), {1024, 32, 0}), 1u);
}

TEST(Occupancy, IsZeroForBlocksThatCannotRun) {
  EXPECT_EQ(on_h200(0, 32, 0), 0u);
  EXPECT_EQ(on_h200(1025, 32, 0), 0u);
  EXPECT_EQ(on_h200(128, 256, 0), 0u);
  EXPECT_EQ(on_h200(1024, 65, 0), 0u);
  EXPECT_THAT(refusal_of([] {
                require_occupancy(find_gpu("A100"), {256, 32, 200 * 1024}, "stage 'gemm'");
              }),
              AllOf(HasSubstr("stage 'gemm'"), HasSubstr("204800 bytes"), HasSubstr("A100"),
                    HasSubstr("smaller tile")));
}

// An SM that is filled block by block holds what the formula says.
TEST(Occupancy, IsWhatAMachineHolds) {
  for (const gpu& device : built_in_gpus)
    for (u32 threads = 1; threads <= 1024; threads += 93)
      for (u32 registers = 0; registers <= 255; registers += 17)
        for (u32 shared = 0; shared <= device.shared_per_block; shared += 9001) {
          const block_resources block{threads, registers, shared};
          if (occupancy(device, block) == 0) continue;
          machine sm(1, capacity_of(device));
          const block_footprint each = footprint_of(device, block);
          u32 held = 0;
          for (; sm.fits(0, each); ++held) sm.take(0, each);
          ASSERT_EQ(held, occupancy(device, block))
              << device.name << ' ' << threads << ' ' << registers << ' ' << shared;
        }
}

TEST(Machine, HoldsBlocksOfSeveralKernels) {
  const gpu& device = find_gpu("H200");
  const block_footprint large =
      footprint_of(device, {.threads = 256, .registers = 32, .shared_bytes = 150 * 1024});
  const block_footprint small =
      footprint_of(device, {.threads = 128, .registers = 32, .shared_bytes = 70 * 1024});
  machine sm(1, capacity_of(device));
  sm.take(0, large);
  EXPECT_FALSE(sm.fits(0, large));
  EXPECT_TRUE(sm.fits(0, small));
  sm.take(0, small);
  EXPECT_FALSE(sm.fits(0, small));
  sm.give_back(0, large, 70);
  EXPECT_EQ(sm.usable_from(0), 70u);
  EXPECT_FALSE(sm.fits(
      0, footprint_of(device, {.threads = 256, .registers = 32, .shared_bytes = 160 * 1024})));
  EXPECT_TRUE(sm.fits(0, large));
}

} // namespace
} // namespace cusync::sim
