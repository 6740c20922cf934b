// SPDX-License-Identifier: MIT
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/order/column_major.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>
#include <cusync/sim/cusync.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace cusync::sim {
namespace {

constexpr operand<0> A;

/// A timeline in an order of its own: events at the same time may change places, and with them SMs.
std::vector<tile_record> sorted(std::vector<tile_record> timeline) {
  std::sort(timeline.begin(), timeline.end(), [](const tile_record& a, const tile_record& b) {
    return std::tuple(a.run, a.stage, a.block) < std::tuple(b.run, b.stage, b.block);
  });
  return timeline;
}

void expect_same_timeline(const report& predicted, const report& executed) {
  ASSERT_EQ(predicted.timeline.size(), executed.timeline.size());
  const std::vector<tile_record> ours = sorted(predicted.timeline);
  const std::vector<tile_record> theirs = sorted(executed.timeline);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const tile_record &a = ours[i], &b = theirs[i];
    ASSERT_TRUE(a.tile == b.tile && a.block == b.block && a.start_ns == b.start_ns &&
                a.end_ns == b.end_ns && a.work_ns == b.work_ns && a.wait_ns == b.wait_ns)
        << "stage " << a.stage << ", tile " << to_string(a.tile) << ": " << a.start_ns << "-"
        << a.end_ns << " waiting " << a.wait_ns << ", executed " << b.start_ns << "-" << b.end_ns
        << " waiting " << b.wait_ns;
  }
}

/// Each wait lies in its tile, behind those before it, and together they are what the tile counts.
void expect_waits_in_their_tiles(const report& predicted) {
  std::vector<u64> waited(predicted.timeline.size(), 0), end(predicted.timeline.size(), 0);
  for (const wait_record& wait : predicted.waits) {
    const tile_record& tile = predicted.timeline.at(wait.tile);
    ASSERT_GE(wait.start_ns, std::max(tile.start_ns, end[wait.tile]));
    ASSERT_LE(wait.end_ns, tile.end_ns);
    end[wait.tile] = wait.end_ns;
    waited[wait.tile] += wait.end_ns - wait.start_ns;
  }
  for (std::size_t i = 0; i < waited.size(); ++i)
    ASSERT_EQ(waited[i], predicted.timeline[i].wait_ns);
}

/// What a block does, waiting in that style.
template <waits Style, class Stage>
void wait_and_post(const row_dependence& reads, Stage& stage, tile_coord tile) {
  const step_range steps = reads.steps(tile);
  if constexpr (Style == waits::whole_tile) stage.wait_all(A, tile);
  if constexpr (Style == waits::each_step)
    for (u32 step = steps.begin; step < steps.end; ++step) stage.wait(A, tile, step);
  if constexpr (Style == waits::ahead)
    for (u32 step = steps.begin; step < steps.end;) step = stage.wait_ahead(A, tile, step);
  stage.post(tile);
}

/// Two stages, executed and predicted.
template <class Policy, tile_source Source = tile_source::block_index,
          waits Style = waits::each_step>
void expect_prediction(launch_mode mode, u32 shared_bytes, u32 blocks, double jitter,
                       element_extent matrix = {70, 50}) {
  using Producer = CuStage<RowMajor, inputs<>, outputs<Policy>, Source>;
  using Consumer =
      CuStage<ColumnMajor, inputs<reads<0, Policy, row_dependence>>, outputs<>, Source>;
  const row_dependence reads{.matrix = matrix,
                             .producer_tile = {2, 5},
                             .consumer_rows = 3,
                             .step_cols = 3,
                             .consumer_cols = 9,
                             .producer_slices = 2,
                             .consumer_slices = 2};
  CuSync chain(find_gpu("H200"), {.mode = mode, .jitter = jitter});
  auto& first = chain.stage<Producer>("first", reads.producer(), RowMajor{}, {blocks});
  auto& second = chain.stage<Consumer>("second", reads.consumer(), ColumnMajor{}, {blocks});
  chain.dependency<Policy>(first, second, A, reads);
  const auto kernel = [reads](auto stage) {
    stage.start();
    while (auto tile = stage.tile()) wait_and_post<Style>(reads, stage, *tile);
  };
  const block_resources block{.threads = 128, .registers = 32, .shared_bytes = shared_bytes};
  const auto a = chain.kernel(first, kernel, block, {.ns = 9000});
  const auto b = chain.kernel(second, kernel, block, {.ns = 7000});
  for (int run = 0; run < 3; ++run) chain.enqueue(a(), b());
  const report predicted = chain.predict(3, {.kept = keep::timeline, .style = Style});
  const report executed = chain.synchronize();
  SCOPED_TRACE(std::string(name_of(mode)) + ", " + std::to_string(shared_bytes) + " bytes");
  ASSERT_EQ(predicted.stages.size(), 6u);
  EXPECT_EQ(predicted.mode, executed.mode);
  EXPECT_EQ(predicted.work_ns, executed.work_ns);
  // The two engines break ties differently where both claim tiles, or tiles vary; and `wait_ahead` sees
  // posts that come while it looks.
  const double allowed = blocks != 0 || jitter != 0 || Style == waits::ahead ? 0.02 : 0;
  EXPECT_NEAR(static_cast<double>(predicted.makespan_ns), static_cast<double>(executed.makespan_ns),
              allowed * static_cast<double>(executed.makespan_ns));
  expect_waits_in_their_tiles(predicted);
  if (allowed != 0) return;
  EXPECT_EQ(predicted.wait_ns, executed.wait_ns);
  expect_same_timeline(predicted, executed);
}

constexpr launch_mode modes[] = {launch_mode::serial, launch_mode::pdl, launch_mode::streams};

TEST(Timing, IsThatOfAnExecution) {
  for (const launch_mode mode : modes)
    for (const u32 shared : {200u * 1024, 100u * 1024, 30u * 1024}) {
      expect_prediction<RowSync>(mode, shared, 0, 0);
      expect_prediction<TileSync>(mode, shared, 0, 0);
      expect_prediction<GridSync>(mode, shared, 0, 0);
    }
}

/// Rows of more semaphores than a warp looks at, or than a word of `reached_map` holds.
TEST(Timing, IsThatOfAnExecutionWithLongRows) {
  for (const launch_mode mode : {launch_mode::pdl, launch_mode::streams}) {
    expect_prediction<TileSync>(mode, 200 * 1024, 0, 0, {22, 175});
    expect_prediction<TileSync>(mode, 100 * 1024, 0, 0, {22, 990});
    expect_prediction<RowSync>(mode, 100 * 1024, 0, 0, {990, 22});
  }
}

TEST(Timing, IsThatOfAnExecutionThatWaitsOnce) {
  constexpr auto once = waits::whole_tile;
  for (const launch_mode mode : modes) {
    expect_prediction<TileSync, tile_source::block_index, once>(mode, 100 * 1024, 0, 0, {22, 990});
    expect_prediction<RowSync, tile_source::block_index, once>(mode, 30 * 1024, 0, 0);
  }
}

TEST(Timing, IsThatOfAnExecutionThatLooksAhead) {
  constexpr auto ahead = waits::ahead;
  for (const launch_mode mode : modes) {
    expect_prediction<TileSync, tile_source::block_index, ahead>(mode, 100 * 1024, 0, 0, {22, 990});
    expect_prediction<TileSync, tile_source::block_index, ahead>(mode, 200 * 1024, 0, 0);
    expect_prediction<RowSync, tile_source::block_index, ahead>(mode, 30 * 1024, 0, 0);
  }
}

TEST(Timing, KeepsNoTimelineUnlessAsked) {
  using Stage = CuStage<RowMajor, inputs<>, outputs<>>;
  CuSync chain(find_gpu("H200"));
  auto& stage = chain.stage<Stage>("only", {3, 3, 1}, RowMajor{});
  chain.kernel(stage, [](auto) {});
  EXPECT_TRUE(chain.predict().timeline.empty());
  EXPECT_EQ(chain.predict(1, {.kept = keep::timeline}).timeline.size(), 9u);
}

TEST(Timing, IsThatOfAnExecutionWithClaimsAndJitter) {
  for (const launch_mode mode : modes) {
    expect_prediction<RowSync, tile_source::counter>(mode, 200 * 1024, 132, 0);
    expect_prediction<TileSync, tile_source::counter>(mode, 100 * 1024, 200, 0);
    expect_prediction<RowSync>(mode, 200 * 1024, 0, 0.05);
  }
}

TEST(Timing, FindsADeadlock) {
  using Producer = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
  using Consumer = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;
  const row_dependence reads{.matrix = {1, 9},
                             .producer_tile = {1, 1},
                             .consumer_rows = 1,
                             .step_cols = 1,
                             .consumer_cols = 9};
  CuSync chain(find_gpu("A100"), {.gate = gate_kind::none, .stages = pick::reversed, .slots = 4});
  auto& first = chain.stage<Producer>("first", reads.producer(), RowMajor{});
  auto& second = chain.stage<Consumer>("second", reads.consumer(), RowMajor{});
  chain.dependency<RowSync>(first, second, A, reads);
  EXPECT_THROW(chain.predict(), deadlock);
}

TEST(Timing, CountsAMillionTiles) {
  using Stage = CuStage<RowMajor, inputs<>, outputs<>>;
  CuSync chain(find_gpu("H200"), {.mode = launch_mode::serial});
  auto& stage = chain.stage<Stage>("wide", {1000, 1000, 1}, RowMajor{});
  chain.kernel(stage, [](auto) {}, {.threads = 128, .registers = 32, .shared_bytes = 200 * 1024},
               {.ns = 20'000});
  const gpu& device = chain.device();
  const u64 waves = 7576; // of 132
  EXPECT_EQ(chain.predict().makespan_ns, device.first_launch_ns + device.block_start_ns +
                                             waves * 20'000 + (waves - 1) * device.turnaround_ns);
}

} // namespace
} // namespace cusync::sim
