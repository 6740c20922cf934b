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

constexpr u64 few_waves = 8;

/// What is simulated of a kernel. Overlap happens where one ends and the other begins, so of many waves
/// some are left out; of very many short ones several blocks are taken as one.
struct part {
  tile_extent grid;
  u64 tile_ns = 1;
  u64 left_out = 0; ///< Waves.
  u64 merged = 1;   ///< Blocks in each.
};

/// The most columns up to the grid's own that make whole rows of so many blocks.
u32 columns_for(u64 blocks, u32 wanted) {
  constexpr u64 most_rows = 32768; // the product of both kernels' rows fits in 32 bits
  const u64 least = (blocks - 1) / most_rows + 1;
  for (u64 columns = std::min(std::max<u64>(wanted, least), blocks); columns > least; --columns)
    if (blocks % columns == 0) return static_cast<u32>(columns);
  return static_cast<u32>(least);
}

/// Six digits of a binary number: equal kernels differ by less than that.
u64 rounded(u64 ns) {
  constexpr int digits = 6;
  const int drop = std::max(0, static_cast<int>(std::bit_width(ns)) - digits);
  return ns >> drop << drop;
}

u64 wave_ns(const sim::gpu& gpu, const wave_shape& kernel) {
  return std::max<u64>(1, rounded(kernel.duration_ns / kernel.whole_waves(gpu)));
}

part part_of(const sim::gpu& gpu, const wave_shape& kernel, u64 kept_waves) {
  const u64 places = kernel.places(gpu);
  const u64 kept = std::min(kept_waves, kernel.whole_waves(gpu));
  part made;
  made.left_out = kernel.whole_waves(gpu) - kept;
  made.merged = std::max<u64>(1, kept / few_waves);
  const u64 blocks = kernel.blocks - made.left_out * places;
  const u64 merged_blocks = std::max<u64>(1, (blocks + made.merged / 2) / made.merged);
  const u32 columns = columns_for(merged_blocks, kernel.columns);
  made.grid = {static_cast<u32>((merged_blocks - 1) / columns + 1), columns};
  const u64 waves = (merged_blocks - 1) / places + 1;
  const u64 between = (waves - 1) * gpu.turnaround_ns / waves; // the simulator adds it
  const u64 a_wave = wave_ns(gpu, kernel) * kept / waves;
  made.tile_ns = std::max<u64>(1, a_wave - std::min(a_wave, between));
  return made;
}

/// The last waves of the first kernel, one block as it is: they decide when the second can begin.
part producer_part(const sim::gpu& gpu, const wave_shape& first) {
  return part_of(gpu, first, 2 * few_waves - 1);
}

/// As much of the second one as can run beside the first one's last wave, and some more.
part consumer_part(const sim::gpu& gpu, const wave_shape& first, const wave_shape& second) {
  const u64 beside = 4 * wave_ns(gpu, first) / wave_ns(gpu, second) + 1;
  return part_of(gpu, second, std::max(beside, 2 * few_waves - 1));
}

using first_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
using second_stage = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;

/// A merged block pays for the waits of all that it stands for.
u64 makespan_ns(const sim::gpu& gpu, launch_mode mode, const wave_shape& first,
                const wave_shape& second) {
  const part producer = producer_part(gpu, first), consumer = consumer_part(gpu, first, second);
  const u64 waits = mode == launch_mode::serial ? 0 : (consumer.merged - 1) * gpu.satisfied_wait_ns;
  // A matrix of which a producer's row of tiles and a consumer's both have whole numbers.
  const row_dependence reads{{producer.grid.rows * consumer.grid.rows, producer.grid.cols},
                             {consumer.grid.rows, 1},
                             producer.grid.rows,
                             producer.grid.cols,
                             consumer.grid.cols};
  sim::CuSync chain(gpu, {.mode = mode});
  auto& ahead = chain.stage<first_stage>("first", producer.grid, RowMajor{});
  auto& behind = chain.stage<second_stage>("second", consumer.grid, RowMajor{});
  chain.dependency<RowSync>(ahead, behind, operand<0>{}, reads);
  const auto no_kernel = [](const auto&) {};
  chain.kernel(ahead, no_kernel, first.block, {.ns = producer.tile_ns});
  chain.kernel(behind, no_kernel, second.block, {.ns = consumer.tile_ns + waits});
  return chain.predict().makespan_ns;
}

/// What the waves that are left out pay for posts and waits.
u64 cost_of_rest_ns(const sim::gpu& gpu, const wave_shape& first, const wave_shape& second) {
  return producer_part(gpu, first).left_out * gpu.post_ns +
         consumer_part(gpu, first, second).left_out * gpu.satisfied_wait_ns;
}

} // namespace

double overlap_model::saved_ns(const sim::gpu& gpu, const wave_shape& first,
                               const wave_shape& second) {
  const auto key = [&](const wave_shape& kernel) {
    return side{kernel.blocks,
                kernel.columns,
                kernel.block.threads,
                kernel.block.registers,
                kernel.block.shared_bytes,
                wave_ns(gpu, kernel)};
  };
  const auto [at, is_new] =
      known_.try_emplace({gpu.compute_capability, gpu.sms, key(first), key(second)}, 0.0);
  if (is_new)
    at->second = static_cast<double>(makespan_ns(gpu, launch_mode::serial, first, second)) -
                 static_cast<double>(makespan_ns(gpu, launch_mode::automatic, first, second)) -
                 static_cast<double>(cost_of_rest_ns(gpu, first, second));
  return at->second;
}

} // namespace cusync::analyze
