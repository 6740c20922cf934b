// SPDX-License-Identifier: MIT
#pragma once

#include "pair_chain.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace cusync::test {

struct launching {
  launch_mode mode;
  sim::gate_kind gate = sim::gate_kind::all_blocks;
};
inline constexpr launching serial{launch_mode::serial};
inline const std::vector<launching> everywhere = {
    serial,
    {launch_mode::pdl},
    {launch_mode::streams},
    {launch_mode::streams, sim::gate_kind::as_needed}};

/// One block a tile; a grid that is rounded up; few blocks that take many tiles, where they can.
inline stage_options some_blocks(u32 choice, tile_source source, u64 tiles) {
  const u32 counts[] = {0, static_cast<u32>(tiles) + 5, 3};
  return {counts[choice % (source == by_counter ? 3 : 2)]};
}

/// Every pair of orders, 1 to 8 slots, dispatch in any order, tiles that vary or sleep, consumers that
/// wait step by step or look ahead.
template <tile_source First = by_index, tile_source Second = by_index, class Policy,
          class Dependence>
void conform(const pair_case<Policy, Dependence>& of,
             const std::vector<launching>& modes = everywhere) {
  u32 turn = 0;
  for (const launching& launching : modes)
    for (const any_order first : all_orders)
      for (const any_order second : all_orders)
        for (u32 slots = 1; slots <= 8; ++slots, ++turn) {
          sim::schedule how{.mode = launching.mode, .gate = launching.gate, .slots = slots};
          pair_options options{first, second};
          options.producer = some_blocks(turn + turn / 8, First, of.dependence.producer().count());
          options.consumer =
              some_blocks(turn / 3 + turn / 8, Second, of.dependence.consumer().count());
          options.consumer_asks = turn % 2 == 0 ? asking::each_step : asking::ahead;
          pair_chain<Policy, Dependence, First, Second> pair(of, sim::find_gpu("H200"), how,
                                                             options);
          for (const sim::pick dispatch :
               {sim::pick::in_order, sim::pick::reversed, sim::pick::random}) {
            how.blocks = how.stages = how.ties = dispatch;
            how.seed = turn;
            how.jitter = dispatch == sim::pick::random ? 0.9 : 0;
            how.slow = {{"producer", {turn % of.dependence.producer().rows, 0, 0}, 150'000}};
            pair.chain().reschedule(how);
            ASSERT_NO_THROW(pair.run(2)) << name_of(how.mode) << ", " << slots << " slots, orders "
                                         << first.is << " and " << second.is << ", turn " << turn;
            if (testing::Test::HasFailure()) return;
          }
        }
}

} // namespace cusync::test
