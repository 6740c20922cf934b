// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include <cusync/dependence/row_dependence.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/no_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/sim/cusync.hpp>

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace cusync::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr operand<0> A;
constexpr row_dependence rows{.matrix = {4, 3},
                              .producer_tile = {1, 1},
                              .consumer_rows = 1,
                              .step_cols = 1,
                              .consumer_cols = 3};

/// What a kernel of both stages does.
constexpr auto obedient = [](auto stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    stage.wait_all(A, *tile);
    stage.post(*tile);
  }
};

template <class Policy = RowSync> struct two_stages {
  using Producer = CuStage<RowMajor, inputs<>, outputs<Policy>>;
  using Consumer = CuStage<RowMajor, inputs<reads<0, Policy, row_dependence>>, outputs<>>;

  explicit two_stages(const gpu& device = find_gpu("H200"), schedule how = {})
      : chain(device, std::move(how)),
        first(chain.template stage<Producer>("first", rows.producer(), RowMajor{})),
        second(chain.template stage<Consumer>("second", rows.consumer(), RowMajor{})) {
    chain.template dependency<Policy>(first, second, A, rows);
  }
  /// One run with these kernels.
  template <class First, class Second> report run(First produce, Second consume) {
    const auto a = chain.kernel(first, produce);
    const auto b = chain.kernel(second, consume);
    return chain.launch(a(), b());
  }
  report run() { return run(obedient, obedient); }

  CuSync chain;
  Producer& first;
  Consumer& second;
};

template <class Error, class Run> std::string message_of(Run run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// --- modes ---------------------------------------------------------------------------------------

TEST(VirtualGpu, PicksTheModeThatTheGpuAllows) {
  EXPECT_EQ(two_stages<>(find_gpu("H200")).run().mode, launch_mode::pdl);
  two_stages<> older(find_gpu("A100"));
  EXPECT_EQ(older.run().mode, launch_mode::streams);
  EXPECT_THAT(older.chain.mode_reason(),
              HasSubstr("A100 SXM4 80GB has no programmatic dependent launch"));
  EXPECT_EQ(two_stages<>(find_gpu("A100"), {.mode = launch_mode::serial}).run().mode,
            launch_mode::serial);
}

TEST(VirtualGpu, RefusesAModeThatTheGpuLacks) {
  two_stages<> pair(find_gpu("V100"), {.mode = launch_mode::pdl});
  EXPECT_THAT(refusal_of([&] { pair.run(); }),
              AllOf(HasSubstr("mode pdl: V100"), HasSubstr("use mode automatic")));
}

TEST(VirtualGpu, RefusesNoSyncOutsideOfSerial) {
  EXPECT_EQ(two_stages<NoSync>(find_gpu("H200"), {.mode = launch_mode::serial}).run().mode,
            launch_mode::serial);
  for (const launch_mode mode : {launch_mode::pdl, launch_mode::streams}) {
    two_stages<NoSync> pair(find_gpu("H200"), {.mode = mode});
    EXPECT_THAT(refusal_of([&] { pair.run(); }),
                AllOf(HasSubstr("operand 0 of stage 'second'"), HasSubstr("NoSync"),
                      HasSubstr("use mode serial")));
  }
}

// --- calls ---------------------------------------------------------------------------------------

TEST(VirtualGpu, WantsOneCallAStage) {
  two_stages<> pair, other;
  const auto a = pair.chain.kernel(pair.first, obedient);
  const auto b = pair.chain.kernel(pair.second, obedient);
  const auto foreign = other.chain.kernel(other.second, obedient);
  EXPECT_THAT(refusal_of([&] { pair.chain.launch(a()); }), HasSubstr("no call of stage 'second'"));
  EXPECT_THAT(refusal_of([&] { pair.chain.launch(a(), a(), b()); }),
              HasSubstr("stage 'first' is called twice"));
  EXPECT_THAT(refusal_of([&] { pair.chain.launch(a(), foreign()); }),
              HasSubstr("belongs to another chain"));
  EXPECT_EQ(pair.chain.launch(b(), a()).timeline.size(), 24u); // in any order
}

TEST(VirtualGpu, TakesNoStageOrKernelAfterALaunch) {
  two_stages<> pair;
  pair.run();
  EXPECT_THAT(refusal_of([&] { pair.chain.kernel(pair.first, obedient); }),
              HasSubstr("launched already"));
  using Stage = CuStage<RowMajor, inputs<>, outputs<>>;
  EXPECT_THAT(refusal_of([&] {
                pair.chain.stage<Stage>("late", tile_extent{1, 1, 1}, RowMajor{});
              }),
              HasSubstr("launched already"));
  EXPECT_THAT(refusal_of([&] { pair.chain.reschedule({.mode = launch_mode::serial}); }),
              HasSubstr("cannot change"));
}

TEST(VirtualGpu, RefusesABlockThatDoesNotFit) {
  two_stages<> pair;
  pair.chain.kernel(pair.first, obedient,
                    {.threads = 128, .registers = 32, .shared_bytes = 300 * 1024});
  EXPECT_THAT(refusal_of([&] { pair.chain.prepare(); }),
              AllOf(HasSubstr("stage 'first'"), HasSubstr("307200 bytes")));
}

// A call holds copies of its arguments, as a kernel launch does.
TEST(VirtualGpu, CopiesArgumentsAtTheCall) {
  two_stages<> pair;
  std::vector<int> seen;
  const auto record = [](std::vector<int>* into, int value, auto stage) {
    stage.start();
    while (auto tile = stage.tile()) {
      into->push_back(value);
      stage.post(*tile);
    }
  };
  const auto a = pair.chain.kernel(pair.first, record);
  const auto b = pair.chain.kernel(pair.second, obedient);
  for (int run = 0; run < 3; ++run) pair.chain.enqueue(a(&seen, run), b());
  EXPECT_TRUE(seen.empty());
  pair.chain.synchronize();
  ASSERT_EQ(seen.size(), 36u);
  EXPECT_EQ(seen.front(), 0);
  EXPECT_EQ(seen.back(), 2);
}

// --- kernels that break the contract -------------------------------------------------------------

TEST(VirtualGpu, FaultsABlockThatLeavesWithoutFinish) {
  two_stages<> pair;
  const auto early = [](auto stage) { stage.start(); };
  EXPECT_THAT(message_of<kernel_fault>([&] { pair.run(obedient, early); }),
              AllOf(HasSubstr("of stage 'second' left without finish()"),
                    HasSubstr("tile() until it returns none")));
}

TEST(VirtualGpu, FaultsABlockThatDoesNotStart) {
  two_stages<> pair;
  const auto forgetful = [](auto stage) {
    while (auto tile = stage.tile()) stage.post(*tile);
  };
  EXPECT_THAT(message_of<kernel_fault>([&] { pair.run(obedient, forgetful); }),
              HasSubstr("stage 'second' takes a tile before start()"));
}

TEST(VirtualGpu, RefusesASecondKernelOfAStage) {
  two_stages<> pair;
  pair.chain.kernel(pair.first, obedient);
  EXPECT_THAT(message_of<invalid_argument>([&] { pair.chain.kernel(pair.first, obedient); }),
              HasSubstr("stage 'first' has a kernel already"));
}

TEST(VirtualGpu, AcceptsABlockThatLeavesThroughFinish) {
  two_stages<> pair;
  const auto early = [](auto stage) {
    stage.start();
    stage.finish();
  };
  EXPECT_NO_THROW(pair.run(obedient, early));
}

TEST(VirtualGpu, RefusesAViewOutsideOfAKernel) {
  two_stages<> pair;
  EXPECT_THAT(message_of<kernel_fault>([] { host_backend::block_index(); }),
              HasSubstr("outside of a kernel"));
}

TEST(VirtualGpu, HandsOnWhatAKernelThrowsAndRunsAgain) {
  for (const launch_mode mode : {launch_mode::serial, launch_mode::pdl, launch_mode::streams}) {
    two_stages<> pair(find_gpu("H200"), {.mode = mode});
    const auto fails = [](bool fail, auto stage) {
      stage.start();
      while (auto tile = stage.tile()) {
        if (fail && (*tile).row == 2) throw std::runtime_error("row 2");
        stage.post(*tile);
      }
    };
    const auto a = pair.chain.kernel(pair.first, fails);
    const auto b = pair.chain.kernel(pair.second, obedient);
    pair.chain.launch(a(false), b());
    pair.chain.enqueue(a(false), b());
    pair.chain.enqueue(a(true), b());
    EXPECT_EQ(message_of<std::runtime_error>([&] { pair.chain.synchronize(); }), "row 2");
    EXPECT_EQ(pair.chain.launch(a(false), b()).timeline.size(), 24u);
  }
}

/// The rows of the producer but for the last: a side output, for somebody behind the chain.
struct upper_rows : row_dependence {
  constexpr tile_extent consumer() const { return {3, 3, 1}; }
};

// Field case 13: the first stage is still at work long after the last post that anybody waits for,
// and the stages behind it are done. What follows in the stream must find it complete.
TEST(VirtualGpu, IsNotDoneBeforeItsFirstStageIs) {
  using P = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
  using C = CuStage<RowMajor, inputs<reads<0, RowSync, upper_rows>>, outputs<RowSync>>;
  using K = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;
  const row_dependence three{.matrix = {3, 3},
                             .producer_tile = {1, 1},
                             .consumer_rows = 1,
                             .step_cols = 1,
                             .consumer_cols = 3};
  for (const launch_mode mode : {launch_mode::serial, launch_mode::pdl, launch_mode::streams}) {
    CuSync chain(find_gpu("H200"), {.mode = mode, .slow = {{"first", {3, 1, 0}, 3'000'000}}});
    auto& p = chain.stage<P>("first", rows.producer(), RowMajor{});
    auto& c = chain.stage<C>("second", three.producer(), RowMajor{});
    auto& k = chain.stage<K>("third", three.consumer(), RowMajor{});
    chain.dependency<RowSync>(p, c, A, upper_rows{rows});
    chain.dependency<RowSync>(c, k, A, three);
    const auto a = chain.kernel(p, obedient);
    const auto b = chain.kernel(c, obedient);
    const auto d = chain.kernel(k, obedient);
    for (int run = 0; run < 3; ++run) chain.enqueue(a(), b(), d());
    const report found = chain.synchronize();
    ASSERT_EQ(found.stages.size(), 9u);
    for (std::size_t i = 0; i < 6; ++i) {
      const std::size_t next_run = i / 3 * 3 + 3;
      EXPECT_LE(found.stages[i].end_ns, found.stages[next_run].start_ns) << name_of(mode);
    }
    EXPECT_EQ(found.stages[1].end_ns < 3'000'000, mode == launch_mode::streams);
  }
}

// --- what it reports -----------------------------------------------------------------------------

TEST(VirtualGpu, ReportsEveryTileAndWait) {
  two_stages<> pair(find_gpu("H200"),
                    {.mode = launch_mode::pdl, .slots = 4, .slow = {{"first", {0, 1, 0}, 50'000}}});
  const report found = pair.run();
  ASSERT_EQ(found.timeline.size(), 24u);
  u64 work = 0;
  for (const tile_record& tile : found.timeline) {
    EXPECT_LT(tile.sm, 4u);
    EXPECT_LE(tile.start_ns + tile.work_ns + tile.wait_ns, tile.end_ns);
    EXPECT_LE(tile.end_ns, found.makespan_ns);
    work += tile.work_ns;
  }
  EXPECT_EQ(work, 24'000u + 50'000u);
  EXPECT_EQ(found.work_ns, work);
  EXPECT_GT(found.waits.size(), 0u);
  for (const wait_record& wait : found.waits) {
    const tile_record& tile = found.timeline.at(wait.tile);
    EXPECT_EQ(tile.stage, 1u);
    EXPECT_GE(wait.start_ns, tile.start_ns);
    EXPECT_LE(wait.end_ns, tile.end_ns);
  }
  EXPECT_NEAR(found.utilisation, 74'000.0 / static_cast<double>(found.makespan_ns) / 4, 1e-9);
}

TEST(VirtualGpu, ReportsWavesOfEachStage) {
  using Stage = CuStage<RowMajor, inputs<>, outputs<>>;
  CuSync chain(find_gpu("H200"), {.mode = launch_mode::serial});
  auto& stage = chain.stage<Stage>("wide", {33, 6, 1}, RowMajor{});
  const auto kernel =
      chain.kernel(stage, obedient, {.threads = 128, .registers = 32, .shared_bytes = 200 * 1024},
                   {.ns = 20'000});
  const report found = chain.launch(kernel());
  const stage_record& wide = found.stages.at(0);
  EXPECT_EQ(wide.blocks_per_wave, 132u);
  EXPECT_DOUBLE_EQ(wide.waves(), 1.5);
  EXPECT_DOUBLE_EQ(wide.wave_utilisation(), 0.75);
  const gpu& device = chain.device();
  EXPECT_EQ(found.makespan_ns,
            device.first_launch_ns + device.block_start_ns + 2 * 20'000 + device.turnaround_ns);
}

TEST(VirtualGpu, StartsADependentInTheLastWaveOfItsProducer) {
  // 1.5 waves and 1.5 waves: four waves in stream order, three where tiles synchronise.
  const row_dependence wide{.matrix = {33, 6},
                            .producer_tile = {1, 1},
                            .consumer_rows = 1,
                            .step_cols = 1,
                            .consumer_cols = 6};
  u64 makespans[2];
  for (const launch_mode mode : {launch_mode::serial, launch_mode::pdl}) {
    using P = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
    using C = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;
    CuSync chain(find_gpu("H200"), {.mode = mode});
    auto& p = chain.stage<P>("first", wide.producer(), RowMajor{});
    auto& c = chain.stage<C>("second", wide.consumer(), RowMajor{});
    chain.dependency<RowSync>(p, c, A, wide);
    const block_resources one_a_sm{.threads = 128, .registers = 32, .shared_bytes = 200 * 1024};
    const auto a = chain.kernel(p, obedient, one_a_sm, {.ns = 100'000});
    const auto b = chain.kernel(c, obedient, one_a_sm, {.ns = 100'000});
    makespans[mode == launch_mode::pdl] = chain.launch(a(), b()).makespan_ns;
  }
  EXPECT_NEAR(static_cast<double>(makespans[0]), 400e3, 20e3);
  EXPECT_NEAR(static_cast<double>(makespans[1]), 300e3, 20e3);
}

} // namespace
} // namespace cusync::sim
