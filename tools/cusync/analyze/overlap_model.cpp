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

/// A kernel with at most 16 waves: of one that has more, several blocks are taken as one.
struct coarse_kernel {
  tile_extent grid;
  u64 merged = 1; ///< Blocks in each.
  u64 tile_ns = 1;
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

coarse_kernel coarse(const sim::gpu& gpu, const wave_shape& kernel) {
  constexpr u64 kept_waves = 8;
  coarse_kernel made;
  made.merged = std::max<u64>(1, kernel.whole_waves(gpu) / kept_waves);
  const u64 blocks = std::max<u64>(1, (kernel.blocks + made.merged / 2) / made.merged);
  const u32 columns = columns_for(blocks, kernel.columns);
  made.grid = {static_cast<u32>((blocks - 1) / columns + 1), columns};
  const u64 waves = (blocks - 1) / kernel.places(gpu) + 1;
  const u64 between = (waves - 1) * gpu.turnaround_ns / waves; // the simulator adds it
  const u64 a_wave = kernel.duration_ns / waves;
  made.tile_ns = std::max<u64>(1, rounded(a_wave - std::min(a_wave, between)));
  return made;
}

using first_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
using second_stage = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;

/// A merged block pays for the posts, or the waits, of all that it stands for.
u64 makespan_ns(const sim::gpu& gpu, launch_mode mode, const wave_shape& first,
                const wave_shape& second) {
  const coarse_kernel producer = coarse(gpu, first), consumer = coarse(gpu, second);
  const bool overlaps = mode != launch_mode::serial;
  const u64 posts = overlaps ? (producer.merged - 1) * gpu.post_ns : 0;
  const u64 waits = overlaps ? (consumer.merged - 1) * gpu.satisfied_wait_ns : 0;
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
  chain.kernel(ahead, no_kernel, first.block, {.ns = producer.tile_ns + posts});
  chain.kernel(behind, no_kernel, second.block, {.ns = consumer.tile_ns + waits});
  return chain.predict().makespan_ns;
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
                coarse(gpu, kernel).tile_ns};
  };
  const auto [at, is_new] =
      known_.try_emplace({gpu.compute_capability, gpu.sms, key(first), key(second)}, 0.0);
  if (is_new)
    at->second = static_cast<double>(makespan_ns(gpu, launch_mode::serial, first, second)) -
                 static_cast<double>(makespan_ns(gpu, launch_mode::automatic, first, second));
  return at->second;
}

} // namespace cusync::analyze
