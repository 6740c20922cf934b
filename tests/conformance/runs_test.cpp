// SPDX-License-Identifier: MIT
// Runs that follow each other without a pause: what is never reset must neither pass early nor hang.

#include "pair_chain.hpp"

#include <cusync/dependence/row_dependence.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

namespace cusync::test {
namespace {

constexpr row_dependence rows{.matrix = {9, 8},
                              .producer_tile = {3, 2},
                              .consumer_rows = 3,
                              .step_cols = 2,
                              .consumer_cols = 4};
template <class Policy> pair_case<Policy, row_dependence> over_rows() {
  return {Policy{rows.producer()}, rows, rows.matrix, rows.producer_tile};
}

sim::schedule adversary(launch_mode mode, u32 slots, u64 seed) {
  return {.mode = mode,
          .blocks = sim::pick::random,
          .stages = sim::pick::random,
          .ties = sim::pick::random,
          .seed = seed,
          .slots = slots,
          .jitter = 0.9};
}

constexpr launch_mode modes[] = {launch_mode::serial, launch_mode::pdl, launch_mode::streams};

// Field case 16: iterations that overlap, waits that are overshot, counters used again.
TEST(Runs, AThousandInFlightWithSleepersOnBothSides) {
  for (const launch_mode mode : modes) {
    sim::schedule how = adversary(mode, 4, 1); // 3 waves a stage
    how.slow = {{"producer", {1, 2, 0}, 1'000'000}, {"consumer", {0, 1, 0}, 1'000'000}};
    pair_chain<RowSync, row_dependence> pair(over_rows<RowSync>(), sim::find_gpu("H200"), how);
    pair.run(1000);
  }
}

/// Tiles claimed from the counter on one side, one tile a block on the other.
template <class Policy> void expect_wrap_unnoticed(u32 first_run) {
  for (const launch_mode mode : modes)
    for (u32 slots = 1; slots <= 8; ++slots) {
      pair_options options;
      options.producer.blocks = slots % 2 == 0 ? 5 : 0;
      pair_chain<Policy, row_dependence, by_counter, by_index> pair(
          over_rows<Policy>(), sim::find_gpu("H200"), adversary(mode, slots, slots), options);
      pair.chain().start_at_run(first_run);
      pair.run(5);
      pair.run(1);
    }
}

TEST(Runs, TheRunNumberWraps) {
  expect_wrap_unnoticed<RowSync>(0xfffffffe);
  expect_wrap_unnoticed<TileSync>(0xfffffffe);
}

TEST(Runs, SemaphoresWrapAmidTheRuns) {
  expect_wrap_unnoticed<RowSync>(0x3ffffffe);  // 4 posts a run: 2^32 in the second of these
  expect_wrap_unnoticed<RowSync>(0x1ffffffe);  // half way: where a signed difference would turn
  expect_wrap_unnoticed<TileSync>(0x7ffffffe); // 1 post a run
}

// A semaphore that is behind by one run must not pass for one that is ahead, whatever the run.
TEST(Runs, NoRunPassesOnThePostsOfTheOneBefore) {
  for (const u32 posts : {1u, 4u, 24u, 1000u})
    for (const u32 run :
         {0u, 1u, 0x1fffffffu, 0x3fffffffu, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu}) {
      const u32 before = wanted_in_run(run - 1, posts); // run 0 follows run 2^32 - 1
      const u32 now = wanted_in_run(run, posts);
      EXPECT_TRUE(reached(now, now));
      EXPECT_FALSE(reached(before, now)) << posts << " posts, run " << run;
      EXPECT_FALSE(reached(now - 1, now)) << posts << " posts, run " << run;
    }
}

TEST(Runs, EagerRunsAndQueuedOnesMix) {
  pair_chain<RowSync, row_dependence> pair(over_rows<RowSync>(), sim::find_gpu("H200"),
                                           adversary(launch_mode::pdl, 3, 9));
  for (const u32 runs : {1u, 7u, 2u, 1u, 13u}) pair.run(runs);
}

/// The first half of the state's life: what was left by a run that failed is not seen by the next.
TEST(Runs, AChainRunsAgainAfterADeadlock) {
  sim::schedule how{.mode = launch_mode::streams,
                    .gate = sim::gate_kind::none,
                    .stages = sim::pick::reversed,
                    .slots = 2};
  pair_chain<RowSync, row_dependence> pair(over_rows<RowSync>(), sim::find_gpu("H200"), how);
  EXPECT_THROW(pair.run(2), deadlock);
  how.gate = sim::gate_kind::all_blocks;
  pair.chain().reschedule(how);
  pair.run(2);
}

} // namespace
} // namespace cusync::test
