// SPDX-License-Identifier: MIT
// What the checker says of chains that have a name, in the words that a person reads.

#include <cusync/dependence/conv2d_dependence.hpp>
#include <cusync/dependence/grid_dependence.hpp>
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/dependence/strided_dependence.hpp>
#include <cusync/dependence/tile_dependence.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>
#include <cusync/sim/check.hpp>
#include <cusync/sim/described_chain.hpp>

#include <gmock/gmock.h>

#include <malloc.h> // malloc_trim

#include <ctime>
#include <fstream>
#include <string>

namespace cusync::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

check_report checked(const chain_description& of) {
  described_chain made(of, faults::kept);
  return check(made, of.device, of.mode, {.gate = of.gate, .slots = of.slots});
}

stage_description stage(std::string name, tile_extent grid, element_extent tile = {1, 1}) {
  stage_description made;
  made.name = std::move(name);
  made.grid = grid;
  made.tile = tile;
  return made;
}

/// A producer and a consumer that reads it so.
chain_description pair(const any_dependence& reads, const any_policy& policy,
                       launch_mode mode = launch_mode::pdl) {
  chain_description made;
  made.mode = mode;
  made.stages = {stage("first", reads.producer()), stage("second", reads.consumer())};
  made.dependences = {{"first", "second", reads, policy}};
  return made;
}

any_dependence grid_to_grid(tile_extent from, tile_extent to) {
  return {grid_dependence{from, to}};
}

table_policy a_tile_a_semaphore(tile_extent grid) {
  table_policy table{grid, {}, {}, {}};
  for (u32 i = 0; i < grid.count(); ++i) {
    table.semaphores.push_back(i);
    table.posts.push_back(1);
  }
  return table;
}

// --- coverage -------------------------------------------------------------------------------------

constexpr conv2d_dependence conv{.images = 2,
                                 .height = 8,
                                 .width = 8,
                                 .channels = 4,
                                 .producer_tile = {16, 4},
                                 .consumer_pixels = 16,
                                 .consumer_cols = 1,
                                 .step_channels = 4};

TEST(Check, ProvesHaloUnequalTilesSlicesAndStridedThirds) {
  const row_dependence unequal{{100, 96}, {16, 24}, 40, 20, 3, 2, 3};
  const strided_dependence thirds{{4, 12, 1}, 4};
  for (const launch_mode mode : {launch_mode::pdl, launch_mode::streams, launch_mode::serial}) {
    EXPECT_TRUE(checked(pair({conv}, {Conv2DTileSync{{conv.producer()}}}, mode)).proved());
    EXPECT_TRUE(checked(pair({unequal}, {RowSync{unequal.producer()}}, mode)).proved());
    EXPECT_TRUE(checked(pair({unequal}, {TileSync{unequal.producer()}}, mode)).proved());
    EXPECT_TRUE(checked(pair({thirds}, {StridedSync{thirds.producer(), 4}}, mode)).proved());
  }
}

TEST(Check, RefutesAWaitWithoutTheHalo) {
  table_policy own_tile_only = a_tile_a_semaphore(conv.producer());
  for (u32 i = 0; i < conv.consumer().count(); ++i) own_tile_only.waits.push_back({i, 1, 0, 1, 0});
  const check_report report = checked(pair({conv}, {own_tile_only}));
  EXPECT_FALSE(report.proved());
  const counterexample& found = *report[property::coverage].counter;
  EXPECT_EQ(found.what,
            "stage 'second' tile (0, 0, 0) reads tile (1, 0, 0) of stage 'first' without "
            "waiting for its semaphore 1; the policy's guards must name it");
  EXPECT_EQ(found.semaphore, 1u);
  EXPECT_EQ(found.schedule.size(), 4u);
  EXPECT_EQ(report[property::thresholds].is, verdict::proved);
  EXPECT_EQ(report[property::liveness].is, verdict::proved);
}

TEST(Check, RefutesNoSyncOutsideOfSerial) {
  const any_dependence reads = grid_to_grid({1, 2, 1}, {1, 1, 1});
  EXPECT_TRUE(checked(pair(reads, {NoSync{{1, 2, 1}}}, launch_mode::serial)).proved());
  EXPECT_THAT(checked(pair(reads, {NoSync{{1, 2, 1}}}))[property::coverage].why,
              HasSubstr("without waiting for anything (policy NoSync)"));
}

TEST(Check, CountsWhatIsWaitedForAndNotRead) {
  const tile_dependence reads{{4, 6}, {1, 1}, {1, 1}};
  const auto cost = [&](const any_policy& policy, launch_mode mode) {
    return checked(pair({reads}, policy, mode)).edges.at(0);
  };
  EXPECT_EQ(cost({TileSync{reads.producer()}}, launch_mode::pdl).excess(), 0u);
  const over_wait rows = cost({RowSync{reads.producer()}}, launch_mode::pdl);
  EXPECT_EQ(rows.read, 24u);
  EXPECT_EQ(rows.waited, 144u);
  EXPECT_EQ(rows.worst, 5u);
  const over_wait all = cost({GridSync{reads.producer()}}, launch_mode::pdl);
  EXPECT_EQ(all.waits, "grid");
  EXPECT_EQ(all.waited, 576u);
  EXPECT_EQ(cost({RowSync{reads.producer()}}, launch_mode::serial).waits, "launch order");
}

// --- thresholds, orders -----------------------------------------------------------------------------

chain_description with_posts(u32 expected, u32 slices) {
  table_policy table{{1, 1, slices}, std::vector<u32>(slices, 0), {expected}, {}};
  return pair(grid_to_grid({1, 1, slices}, {1, 1, 1}), {table});
}

// Field case 30: a tile is complete with all its slices.
TEST(FieldCase30, OfAnyNumberOfSlicesTheCheckerWantsAll) {
  for (const u32 slices : {1u, 2u, 3u, 4u, 7u}) {
    EXPECT_TRUE(checked(with_posts(slices, slices)).proved());
    const check_report early = checked(with_posts(slices - 1, slices));
    EXPECT_THAT(early[property::thresholds].why, HasSubstr("passes its wait early"));
    EXPECT_THAT(early[property::thresholds].counter->schedule.at(1),
                AllOf(HasSubstr("in run 0 all"),
                      HasSubstr("but (0, 0, " + std::to_string(slices - 1) + ") have posted")));
  }
}

// Field case 33: a wait value one too high, and a tile that nobody posts.
TEST(FieldCase33, TheCheckerFindsWaitsThatNeverEnd) {
  const check_report high = checked(with_posts(4, 3));
  EXPECT_THAT(high[property::thresholds].why,
              AllOf(HasSubstr("semaphore 0 of stage 'first' expects 4 posts a run and gets 3"),
                    HasSubstr("stage 'second' tile (0, 0, 0) waits for ever")));
  EXPECT_EQ(high[property::liveness].is, verdict::refuted);
  chain_description missing = pair(grid_to_grid({1, 6, 1}, {1, 1, 1}), {TileSync{{1, 6, 1}}});
  missing.stages[0].blocks = 5;
  const check_report report = checked(missing);
  EXPECT_THAT(report[property::tiles].why, HasSubstr("tile (0, 5, 0) is taken by no block"));
  EXPECT_THAT(report[property::thresholds].why, HasSubstr("semaphore 5 of stage 'first'"));
}

// Field case 16: what is right in one run is right in all, past both wraps.
TEST(FieldCase16, ThresholdsHoldPastTheWraps) {
  EXPECT_TRUE(checked(with_posts(3, 3)).proved());
  const check_report never = checked(with_posts(0x80000003, 3)); // its distance looks negative
  EXPECT_THAT(never[property::thresholds].why, HasSubstr("passes its wait early"));
  // Nothing is posted and nothing is expected: true in every run.
  table_policy unused{{1, 1, 1}, {0}, {1, 0}, {{0, 1, 0, 2, 1}}};
  EXPECT_TRUE(checked(pair(grid_to_grid({1, 1, 1}, {1, 1, 1}), {unused})).proved());
}

// Field case 7: constant 0, past the end, a duplicate.
TEST(FieldCase7, TheCheckerNamesTheTileOfABadOrder) {
  const auto verdict_of = [](std::vector<tile_coord> tiles) {
    chain_description made;
    made.stages = {stage("only", {1, 3, 1})};
    made.stages[0].order = {table_order{std::move(tiles)}};
    return checked(made)[property::tiles].why;
  };
  EXPECT_THAT(verdict_of({{0, 0}, {0, 0}, {0, 0}}), HasSubstr("tile (0, 0, 0) is taken a second"));
  EXPECT_THAT(verdict_of({{0, 0}, {0, 3}, {0, 1}}), HasSubstr("tile (0, 3, 0) lies outside"));
  EXPECT_THAT(verdict_of({{0, 2}, {0, 1}, {0, 2}}), HasSubstr("tile (0, 2, 0) is taken a second"));
  EXPECT_THAT(verdict_of({{0, 2}, {0, 1}, {0, 0}}), HasSubstr("each of 3 tiles is taken once"));
}

TEST(Check, IdleBlocksOfARoundedUpGridTakeNothing) {
  chain_description made = pair(grid_to_grid({1, 3, 1}, {1, 3, 1}), {TileSync{{1, 3, 1}}});
  made.stages[0].blocks = 8;
  made.stages[1].blocks = 5;
  made.stages[1].source = tile_source::counter;
  EXPECT_THAT(checked(made)[property::tiles].why, HasSubstr("7 blocks find no tile"));
  EXPECT_TRUE(checked(made).proved());
}

// Field case 28: whatever the size, all posts are expected and all reads covered.
TEST(FieldCase28, TheCheckerProvesPartialTilesOfAllPolicies) {
  for (const u32 rows : {1u, 2u, 63u, 64u, 65u, 127u, 128u, 129u, 191u, 200u, 255u, 256u, 257u})
    for (const u32 cols : {127u, 128u, 129u, 576u}) {
      const row_dependence reads{{rows, cols}, {64, 128}, 96, 32, 3};
      const tile_extent grid = reads.producer();
      for (const any_policy& policy :
           {any_policy(TileSync{grid}), any_policy(RowSync{grid}), any_policy(GridSync{grid}),
            any_policy(BatchedRowSync{grid, 2}), any_policy(StridedSync{grid, 2})})
        ASSERT_TRUE(checked(pair({reads}, policy)).proved()) << rows << " x " << cols;
    }
}

// --- liveness -------------------------------------------------------------------------------------

chain_description behind_gate(gate_kind gate, u32 producers, u32 consumers, u32 slots) {
  chain_description made = pair(grid_to_grid({1, producers, 1}, {1, consumers, 1}),
                                {RowSync{{1, producers, 1}}}, launch_mode::streams);
  made.gate = gate;
  made.slots = slots;
  return made;
}

TEST(Check, RefutesAGateThatOpensAtTheFirstBlock) {
  const check_report report = checked(behind_gate(gate_kind::first_block, 8, 4, 4));
  const counterexample& found = *report[property::liveness].counter;
  EXPECT_EQ(found.stage, "second");
  EXPECT_EQ(found.other, "first");
  EXPECT_EQ(found.semaphore, 0u);
  ASSERT_EQ(found.schedule.size(), 3u);
  EXPECT_THAT(found.schedule[1], AllOf(HasSubstr("as many as fit of 4 blocks of stage 'second'"),
                                       HasSubstr("which has 1 posts of 8")));
  EXPECT_THAT(found.schedule[2], HasSubstr("no place is left for 7 tiles of stage 'first'"));
  EXPECT_TRUE(checked(behind_gate(gate_kind::all_blocks, 8, 4, 4)).proved());
  EXPECT_TRUE(checked(behind_gate(gate_kind::first_block, 8, 3, 4)).proved());
  EXPECT_FALSE(checked(behind_gate(gate_kind::none, 8, 4, 4)).proved());
}

// One tile of ten must be complete before the gate opens, and lets one consumer go on: nine wait at most.
// The search does not try all choices of so many tiles, and says so.
TEST(Check, SaysWhereItHasNeitherProofNorCounterexample) {
  const tile_dependence own{{1, 10}, {1, 1}, {1, 1}};
  chain_description made = pair({own}, {TileSync{own.producer()}}, launch_mode::streams);
  made.gate = gate_kind::first_block;
  made.slots = 10;
  const check_report report = checked(made);
  EXPECT_EQ(report[property::liveness].is, verdict::unproved);
  EXPECT_FALSE(report.proved());
  EXPECT_FALSE(report[property::liveness].counter.has_value());
  made.slots = 9;
  EXPECT_EQ(checked(made)[property::liveness].is, verdict::refuted);
  made.slots = 11;
  EXPECT_TRUE(checked(made).proved());
}

// Field case 6: "fits in one wave", by the numbers of SMs and of blocks an SM.
TEST(FieldCase6, TheCheckerRefutesTheMissingGateWhereItDoesNotFit) {
  struct fit {
    u32 sms, first_a_sm, second_a_sm, first, second;
    bool safe;
  };
  for (const fit& f : {fit{132, 1, 2, 66, 66, true},
                       {78, 1, 1, 66, 66, true},
                       {78, 1, 1, 66, 78, false},
                       {80, 2, 2, 96, 159, true},
                       {80, 2, 2, 96, 160, false},
                       {1, 1, 1, 1, 1, false}}) {
    chain_description made = behind_gate(gate_kind::none, f.first, f.second, 0);
    made.device = find_gpu("A100");
    made.device.sms = f.sms;
    made.stages[0].block = {128, 32, 160 * 1024 / f.first_a_sm};
    made.stages[1].block = {128, 32, 160 * 1024 / f.second_a_sm};
    EXPECT_EQ(checked(made).proved(), f.safe) << f.sms << ' ' << f.second;
    made.gate = gate_kind::as_needed; // none only where that is proved
    EXPECT_TRUE(checked(made).proved()) << f.sms << ' ' << f.second;
  }
}

// The one block of `second` is stuck at its first tile, so that its second, which could run, is not done.
TEST(Check, KnowsThatAStuckBlockDrawsNoMoreTiles) {
  chain_description made = behind_gate(gate_kind::none, 1, 2, 2);
  made.stages[1].source = tile_source::counter;
  made.stages[1].blocks = 1;
  made.stages.push_back(stage("third", {1, 1, 1}));
  table_policy first_only{{1, 1, 1}, {0}, {1}, {{0, 1, 0, 1, 0}, {}}};
  table_dependence nothing_second{{1, 1, 1}, {1, 2, 1}, {{{0, 1, 0, 1}}, {{}}}};
  made.dependences = {{"first", "second", {nothing_second}, {first_only}}};
  table_dependence of_second{{1, 2, 1}, {1, 1, 1}, {{{0, 1, 1, 2}}}};
  made.dependences.push_back({"second", "third", {of_second}, {TileSync{{1, 2, 1}}}});
  EXPECT_EQ(checked(made)[property::liveness].is, verdict::refuted);
  made.slots = 3;
  EXPECT_TRUE(checked(made).proved());
}

// `third` begins when `second` is complete, and `second` waits for all of `first`: a wait of `third` for
// too few posts of it is harmless, until the distance to what it wants passes 31 bits.
TEST(Check, NamesTheRunInWhichAThresholdShows) {
  const tile_extent two{1, 2, 1}, one{1, 1, 1};
  chain_description made = pair(grid_to_grid(two, one), {RowSync{two}}, launch_mode::streams);
  made.stages.push_back(stage("third", one));
  made.dependences.push_back({"second", "third", grid_to_grid(one, one), {GridSync{one}}});
  table_policy one_too_few{two, {0, 0}, {1}, {}};
  made.dependences.push_back({"first", "third", grid_to_grid(two, one), {one_too_few}});
  const check_report report = checked(made);
  EXPECT_EQ(report[property::coverage].is, verdict::proved);
  EXPECT_THAT(report[property::thresholds].why, HasSubstr("tile (0, 0, 0) waits for ever"));
  EXPECT_THAT(report[property::thresholds].counter->schedule.at(1),
              HasSubstr("in run 2147483647 all 2 tiles"));
}

TEST(Check, RefusesAModeThatTheGpuLacks) {
  chain_description made = behind_gate(gate_kind::all_blocks, 2, 2, 0);
  made.device = find_gpu("A100");
  made.mode = launch_mode::pdl;
  EXPECT_THROW(checked(made), invalid_argument);
}

// --- a user's own types -----------------------------------------------------------------------------

constexpr operand<0> A;
constexpr row_dependence rows{{4, 3}, {1, 1}, 1, 1, 3};

/// The semaphore of the next row: never the right one.
struct SkewedSync {
  tile_extent producer;
  constexpr u32 semaphore_count() const { return producer.rows; }
  constexpr u32 semaphore_of(tile_coord tile) const { return tile.row; }
  constexpr u32 posts_expected(u32) const { return producer.cols; }
  constexpr semaphore_range guards(tile_range range) const {
    return {(range.row_begin + 1) % producer.rows, 1, 0, 1, 0};
  }
  friend constexpr bool operator==(SkewedSync, SkewedSync) = default;
};

struct unchecked_chain : CuSync {
  unchecked_chain() { keep_faults(); }
};

/// Waits for ranges of one column only, or of several columns only.
template <bool Wide> struct HalfSync : TileSync {
  constexpr semaphore_range guards(tile_range range) const {
    return (range.cols() > 1) == Wide ? TileSync::guards(range) : semaphore_range{};
  }
  friend constexpr bool operator==(HalfSync, HalfSync) = default;
};

/// What the checker says of rows that wait through a policy.
template <class Policy> property_result coverage_with() {
  using First = CuStage<RowMajor, inputs<>, outputs<Policy>>;
  using Second = CuStage<RowMajor, inputs<reads<0, Policy, row_dependence>>, outputs<>>;
  unchecked_chain chain;
  auto& first = chain.stage<First>("first", rows.producer(), RowMajor{});
  auto& second = chain.stage<Second>("second", rows.consumer(), RowMajor{});
  chain.dependency(first, second, A, rows, Policy{{rows.producer()}});
  return check(chain, find_gpu("H200"), launch_mode::automatic)[property::coverage];
}

TEST(Check, ChecksWaitsOfStepsAndOfWholeTiles) {
  EXPECT_EQ(coverage_with<Conv2DTileSync>().is, verdict::proved);
  EXPECT_EQ(coverage_with<HalfSync<true>>().is, verdict::refuted);  // by step nothing is waited for
  EXPECT_EQ(coverage_with<HalfSync<false>>().is, verdict::refuted); // nor at once
}

TEST(Check, ChecksAUsersOwnPolicyByItsCode) {
  using First = CuStage<RowMajor, inputs<>, outputs<SkewedSync>>;
  using Second = CuStage<RowMajor, inputs<reads<0, SkewedSync, row_dependence>>, outputs<>>;
  unchecked_chain chain;
  auto& first = chain.stage<First>("first", rows.producer(), RowMajor{});
  auto& second = chain.stage<Second>("second", rows.consumer(), RowMajor{});
  chain.dependency<SkewedSync>(first, second, A, rows);
  const check_report report = check(chain, find_gpu("H200"), launch_mode::automatic);
  EXPECT_EQ(report.mode, launch_mode::pdl);
  EXPECT_THAT(report[property::coverage].why,
              HasSubstr("tile (0, 0, 0) reads tile (0, 0, 0) of stage 'first' without waiting for "
                        "its semaphore 0"));
}

// --- a million tiles --------------------------------------------------------------------------------

/// Four stages, a fifth of the tiles each in `first` and `last`; buffers are used again.
chain_description large(u32 row_count) {
  const tile_extent wide{row_count, 300, 1}, narrow{row_count, 200, 1};
  chain_description made;
  made.buffers = {{"X", {1, 1, 1}, {1, 1}}, {"Y", {1, 1, 1}, {1, 1}}};
  made.stages = {stage("project", wide, {128, 128}), stage("activate", wide, {128, 128}),
                 stage("reduce", narrow, {128, 128}), stage("output", narrow, {128, 128})};
  made.stages[0].writes = made.stages[2].writes = "X";
  made.stages[1].writes = made.stages[3].writes = "Y";
  const element_extent matrix{row_count * 128, 300 * 128}, other{row_count * 128, 200 * 128};
  const tile_dependence own{matrix, {128, 128}, {128, 128}};
  const row_dependence down{matrix, {128, 128}, 128, 64, 200};
  const row_dependence on{other, {128, 128}, 128, 64, 200};
  made.dependences = {{"project", "activate", {own}, {TileSync{wide}}},
                      {"activate", "reduce", {down}, {TileSync{wide}}},
                      {"reduce", "output", {on}, {RowSync{narrow}}}};
  return made;
}

double seconds_to_check(const chain_description& of) {
  described_chain made(of, faults::kept);
  const std::clock_t begin = std::clock();
  EXPECT_TRUE(check(made, of.device, of.mode).proved());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(Check, TakesAMillionTilesInLessThanTwoSeconds) {
  const double seconds = seconds_to_check(large(1000));
  RecordProperty("seconds", std::to_string(seconds));
#ifdef NDEBUG // not under a sanitizer
  EXPECT_LT(seconds, 2);
#endif
}

TEST(Check, FindsADeadlockOfAMillionTilesInLessThanTwoSeconds) {
  chain_description of = large(1000);
  of.mode = launch_mode::streams;
  of.gate = gate_kind::first_block;
  const std::clock_t begin = std::clock();
  EXPECT_EQ(checked(of)[property::liveness].is, verdict::refuted);
#ifdef NDEBUG
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 2);
#else
  static_cast<void>(begin);
#endif
}

/// A number of KB that the system keeps of this process.
long kilobytes(const std::string& which) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(which + ":", 0) == 0) return std::stol(line.substr(which.size() + 1));
  return -1;
}

/// What a check needs at its peak, in KB.
long peak_of(u32 row_count) {
  const chain_description of = large(row_count);
  described_chain made(of, faults::kept);
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5; // forget the peak so far
  const long before = kilobytes("VmRSS");
  EXPECT_TRUE(check(made, of.device, of.mode).proved());
  return kilobytes("VmHWM") - before;
}

TEST(Check, NeedsMemoryLinearInTheTiles) {
  const long twice = peak_of(1000);
  [[maybe_unused]] const long once = peak_of(500);
  RecordProperty("kilobytes", std::to_string(twice));
#ifdef NDEBUG
  EXPECT_GT(once, 500); // the system tells
  EXPECT_LT(twice, 2.4 * static_cast<double>(once));
  EXPECT_LT(twice, 100 * 1000); // 100 bytes a tile
#endif
}

} // namespace
} // namespace cusync::sim
