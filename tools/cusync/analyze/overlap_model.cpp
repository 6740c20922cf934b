// SPDX-License-Identifier: MIT
#include "overlap_model.hpp"

#include <cusync/dependence/row_dependence.hpp> // row_dependence
#include <cusync/order/row_major.hpp>           // RowMajor
#include <cusync/policy/row_sync.hpp>           // RowSync
#include <cusync/sim/cusync.hpp>                // sim::CuSync

#include <algorithm> // max, min
#include <bit>       // bit_width

namespace cusync::analyze {
namespace {

/// Overlap happens where one kernel ends and the other begins: waves in the middle change nothing.
u64 fewer_blocks(u64 blocks, u64 places) {
  constexpr u64 kept_waves = 3;
  if (blocks <= (kept_waves + 1) * places) return blocks;
  return kept_waves * places + (blocks - kept_waves * places) % places;
}

/// The most columns up to the grid's own that make whole rows of so many blocks.
u32 columns_for(u64 blocks, u32 wanted) {
  for (u64 columns = std::min<u64>(wanted, blocks); columns > 1; --columns)
    if (blocks % columns == 0) return static_cast<u32>(columns);
  return 1;
}

tile_extent grid_of(const wave_shape& kernel, u64 places) {
  const u64 blocks = fewer_blocks(kernel.blocks, places);
  const u32 columns = columns_for(blocks, kernel.columns);
  return {static_cast<u32>(blocks / columns), columns};
}

/// Six digits of a binary number: equal kernels differ by less than a percent.
u64 rounded(u64 ns) {
  constexpr int digits = 6;
  const int drop = std::max(0, static_cast<int>(std::bit_width(ns)) - digits);
  return ns >> drop << drop;
}

/// A wave's time, less what the simulator adds between two waves.
u64 tile_ns(const sim::gpu& gpu, const wave_shape& kernel) {
  const u64 waves = kernel.whole_waves(gpu);
  const u64 a_wave = kernel.duration_ns / waves;
  const u64 between = (waves - 1) * gpu.turnaround_ns / waves;
  return std::max<u64>(1, rounded(a_wave - std::min(a_wave, between)));
}

using first_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
using second_stage = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;

u64 makespan_ns(const sim::gpu& gpu, launch_mode mode, const wave_shape& first,
                const wave_shape& second) {
  const tile_extent producer = grid_of(first, first.places(gpu));
  const tile_extent consumer = grid_of(second, second.places(gpu));
  // A matrix of which a producer's row of tiles and a consumer's both have whole numbers.
  const row_dependence reads{{producer.rows * consumer.rows, producer.cols},
                             {consumer.rows, 1},
                             producer.rows,
                             producer.cols,
                             consumer.cols};
  sim::CuSync chain(gpu, {.mode = mode});
  auto& ahead = chain.stage<first_stage>("first", producer, RowMajor{});
  auto& behind = chain.stage<second_stage>("second", consumer, RowMajor{});
  chain.dependency<RowSync>(ahead, behind, operand<0>{}, reads);
  const auto no_kernel = [](const auto&) {};
  chain.kernel(ahead, no_kernel, first.block, {.ns = tile_ns(gpu, first)});
  chain.kernel(behind, no_kernel, second.block, {.ns = tile_ns(gpu, second)});
  return chain.predict().makespan_ns;
}

} // namespace

double overlap_model::saved_ns(const sim::gpu& gpu, const wave_shape& first,
                               const wave_shape& second) {
  const auto key = [&](const wave_shape& kernel) {
    return side{fewer_blocks(kernel.blocks, kernel.places(gpu)),
                kernel.columns,
                kernel.block.threads,
                kernel.block.registers,
                kernel.block.shared_bytes,
                tile_ns(gpu, kernel)};
  };
  const auto [at, is_new] =
      known_.try_emplace({gpu.compute_capability, gpu.sms, key(first), key(second)}, 0.0);
  if (is_new)
    at->second = static_cast<double>(makespan_ns(gpu, launch_mode::serial, first, second)) -
                 static_cast<double>(makespan_ns(gpu, launch_mode::automatic, first, second));
  return at->second;
}

} // namespace cusync::analyze
