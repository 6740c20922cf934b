// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/errors.hpp> // invalid_argument
#include <cusync/gate.hpp>   // block_footprint, sm_capacity
#include <cusync/tile.hpp>   // u32, u64, ceil_div

#include <cctype>      // isalnum, tolower
#include <string>      // string
#include <string_view> // string_view

namespace cusync::sim {

/// A GPU as the simulator sees it: what its SMs hold, how fast they are, and what launching and
/// handing over cost.
///
/// The costs are in nanoseconds, fitted on an H200 under CUDA 13; for other GPUs the same numbers are
/// a guess. They are plain fields: measure, and set your own.
struct gpu {
  std::string_view name;  ///< Its text outlives the description.
  u32 compute_capability; ///< 90 means 9.0.
  u32 sms;
  u32 threads_per_sm;
  u32 blocks_per_sm = 32;
  u32 registers_per_sm = 65536;
  u32 shared_per_sm;          ///< Bytes.
  u32 shared_per_block;       ///< Bytes; the most that a kernel may ask for.
  u32 shared_reserved = 1024; ///< Bytes that the system takes a block.
  u32 shared_unit = 128;      ///< Bytes in which shared memory is handed out.
  u32 boost_mhz;
  double hbm_gb_s;
  double fp16_tflops; ///< Dense, accumulating in fp32.
  u32 l2_mb;

  // Launching, all to the first instruction of a stage's first block but for `block_start_ns`.
  u64 first_launch_ns = 3300; ///< From the launch of a run.
  u64 run_gap_ns = 1553;      ///< From the completion of the run ahead.
  u64 stream_gap_ns = 614;    ///< From the completion of the stage ahead (mode `serial`).
  u64 early_launch_ns = 0;    ///< From the last trigger of the stage ahead (mode `pdl`).
  u64 gate_ns = 4568;         ///< From the start of the last block that a gate counts (`streams`).
  u64 block_start_ns = 100;   ///< Comes on top, for each block that gets a place on an idle SM.
  u64 turnaround_ns = 344; ///< Exit of a block to the first instruction of the next in its place.

  // Handing over.
  u64 claim_ns = 297;           ///< A tile from the stage's counter: one atomic round trip.
  u64 satisfied_wait_ns = 1065; ///< A wait whose posts are there: a round trip and a barrier.
  u64 post_ns = 343;            ///< Barrier and release of a post.
  u64 hand_over_ns = 670;       ///< A post to the return of the wait that it ends.
  u64 grid_wait_ns = 613;       ///< Completion of the stage ahead to the return of a grid wait.

  static constexpr u32 warp = 32;
  static constexpr u32 register_unit = 256; ///< Registers in which a warp's share is handed out.
  static constexpr u32 partitions = 4;      ///< An SM's warps are allocated in fours.
  static constexpr u32 threads_per_block = 1024;
  static constexpr u32 registers_per_thread = 255;
  static constexpr u32 bytes_per_clock = 64; ///< What one SM can move from and to the L2.
};

/// What a kernel asks of an SM for each of its blocks.
struct block_resources {
  u32 threads = 128;
  u32 registers = 32;   ///< A thread.
  u32 shared_bytes = 0; ///< Static and dynamic.
};

/// NVIDIA's data sheets and the compute-capability table of the CUDA programming guide.
inline constexpr gpu built_in_gpus[] = {
    {.name = "V100 SXM2",
     .compute_capability = 70,
     .sms = 80,
     .threads_per_sm = 2048,
     .shared_per_sm = 98304,
     .shared_per_block = 98304,
     .shared_reserved = 0,
     .shared_unit = 256,
     .boost_mhz = 1530,
     .hbm_gb_s = 900,
     .fp16_tflops = 125,
     .l2_mb = 6},
    {.name = "A100 SXM4 80GB",
     .compute_capability = 80,
     .sms = 108,
     .threads_per_sm = 2048,
     .shared_per_sm = 167936,
     .shared_per_block = 166912,
     .boost_mhz = 1410,
     .hbm_gb_s = 2039,
     .fp16_tflops = 312,
     .l2_mb = 40},
    {.name = "RTX 4090",
     .compute_capability = 89,
     .sms = 128,
     .threads_per_sm = 1536,
     .blocks_per_sm = 24,
     .shared_per_sm = 102400,
     .shared_per_block = 101376,
     .boost_mhz = 2520,
     .hbm_gb_s = 1008,
     .fp16_tflops = 165,
     .l2_mb = 72},
    {.name = "L40S",
     .compute_capability = 89,
     .sms = 142,
     .threads_per_sm = 1536,
     .blocks_per_sm = 24,
     .shared_per_sm = 102400,
     .shared_per_block = 101376,
     .boost_mhz = 2520,
     .hbm_gb_s = 864,
     .fp16_tflops = 362,
     .l2_mb = 96},
    {.name = "H100 SXM5",
     .compute_capability = 90,
     .sms = 132,
     .threads_per_sm = 2048,
     .shared_per_sm = 233472,
     .shared_per_block = 232448,
     .boost_mhz = 1980,
     .hbm_gb_s = 3350,
     .fp16_tflops = 989,
     .l2_mb = 50},
    {.name = "H200",
     .compute_capability = 90,
     .sms = 132,
     .threads_per_sm = 2048,
     .shared_per_sm = 233472,
     .shared_per_block = 232448,
     .boost_mhz = 1980,
     .hbm_gb_s = 4800,
     .fp16_tflops = 989,
     .l2_mb = 60},
    {.name = "B200",
     .compute_capability = 100,
     .sms = 148,
     .threads_per_sm = 2048,
     .shared_per_sm = 233472,
     .shared_per_block = 232448,
     .boost_mhz = 1965,
     .hbm_gb_s = 8000,
     .fp16_tflops = 2250,
     .l2_mb = 126},
};

namespace detail {

/// Letters and digits, in lower case: "A100 SXM4" and "a100-sxm4" are the same name.
inline std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

} // namespace detail

/// The built-in GPU whose name begins with `name`; case and punctuation do not matter.
/// Throws `invalid_argument`, listing the names.
inline const gpu& find_gpu(std::string_view name) {
  const std::string wanted = detail::letters_of(name);
  std::string known;
  for (const gpu& candidate : built_in_gpus) {
    if (!wanted.empty() && detail::letters_of(candidate.name).starts_with(wanted)) return candidate;
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  }
  throw invalid_argument("no GPU named '" + std::string(name) + "' is built in; choose one of " +
                         known);
}

/// What an SM of `device` holds.
constexpr sm_capacity capacity_of(const gpu& device) {
  return {device.blocks_per_sm, device.threads_per_sm, device.registers_per_sm,
          device.shared_per_sm};
}

/// What a block of these resources takes of an SM, rounded up as the SM hands it out.
///
/// Each of the SM's partitions holds a whole number of warps; the registers that this leaves over
/// are charged to the warps, so that a plain sum over blocks obeys the rule.
/// Precondition: `occupancy(device, block) > 0`.
constexpr block_footprint footprint_of(const gpu& device, block_resources block) {
  const u32 warps = ceil_div(block.threads, gpu::warp);
  const u32 a_warp = ceil_div(block.registers * gpu::warp, gpu::register_unit) * gpu::register_unit;
  const u32 a_partition = a_warp == 0 ? 0 : device.registers_per_sm / gpu::partitions / a_warp;
  const u32 charged =
      a_partition == 0 ? 0 : device.registers_per_sm / (a_partition * gpu::partitions);
  const u32 shared = ceil_div(block.shared_bytes + device.shared_reserved, device.shared_unit);
  return {warps * gpu::warp, warps * charged, shared * device.shared_unit};
}

/// Blocks of these resources that an SM of `device` holds at once; 0 where it cannot run one.
constexpr u32 occupancy(const gpu& device, block_resources block) {
  const u32 warps = ceil_div(block.threads, gpu::warp);
  const u32 a_warp = ceil_div(block.registers * gpu::warp, gpu::register_unit) * gpu::register_unit;
  const u32 checked_warps = ceil_div(warps, gpu::partitions) * gpu::partitions;
  if (block.threads == 0 || block.threads > gpu::threads_per_block ||
      block.registers > gpu::registers_per_thread ||
      checked_warps * a_warp > device.registers_per_sm ||
      block.shared_bytes > device.shared_per_block)
    return 0;
  const block_footprint each = footprint_of(device, block);
  u32 blocks = cusync::detail::min(device.blocks_per_sm, device.threads_per_sm / each.threads);
  if (each.registers != 0)
    blocks = cusync::detail::min(blocks, device.registers_per_sm / each.registers);
  if (each.shared_bytes != 0)
    blocks = cusync::detail::min(blocks, device.shared_per_sm / each.shared_bytes);
  return blocks;
}

/// Like `occupancy`; throws `invalid_argument` where it is 0, naming `what`.
inline u32 require_occupancy(const gpu& device, block_resources block, const std::string& what) {
  const u32 blocks = occupancy(device, block);
  if (blocks != 0) return blocks;
  throw invalid_argument(what + ": a block of " + std::to_string(block.threads) + " threads, " +
                         std::to_string(block.registers) + " registers a thread and " +
                         std::to_string(block.shared_bytes) +
                         " bytes of shared memory does not fit on an SM of " +
                         std::string(device.name) + "; use a smaller tile");
}

} // namespace cusync::sim
