// SPDX-License-Identifier: MIT
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>
#include <cusync/stage.hpp>

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

namespace cusync {
namespace {

/// One thread of a block of 64 that writes down what it does. A block's other threads do not exist:
/// a test plays them one after the other.
struct tracing_backend {
  static inline std::string trace;
  static inline u32 thread = 0;
  static inline u32 block = 0;
  static inline u64 drawn = 0; ///< What the next draw gives.
  static inline const u32* semaphores = nullptr;
  static inline u32 lanes = 4;

  static void log(const std::string& what) { trace += (trace.empty() ? "" : " ") + what; }
  static std::string number(const u32* semaphore) { return std::to_string(semaphore - semaphores); }

  static u32 rank(by_block) { return thread; }
  static u32 rank(by_warp) { return thread % 32; }
  template <class By> static u32 pollers(By) { return lanes; }
  template <class By> static void sync(By) { log("sync"); }
  template <class By> static u32 from_first(u32, By) { return static_cast<u32>(drawn >> 32); }
  template <class By> static u32 least(u32 value, By) { return value; }
  template <class By> static u64 share(u64, By) {
    log("share");
    return drawn;
  }
  template <class By> static u32 tell_all(u32 value, By) {
    log("tell");
    return value;
  }
  static u32 block_index() { return block; }
  static void draw_if(bool draws, u64*, u64& into) {
    if (!draws) return;
    log("draw");
    into = drawn;
  }
  static void add(u64*, u64 value) { log("add:" + std::to_string(value)); }
  static void add(u32*, u32) { log("started"); }
  static void add_release(u32* semaphore, u32) { log("post:" + number(semaphore)); }
  static u32 load_acquire(const u32* semaphore) {
    log("look:" + number(semaphore));
    return *semaphore;
  }
  static void spin(const stage_link&, const u32* semaphore, const spin_report& where) {
    EXPECT_EQ(where.seen, *semaphore);
    log("spin:" + number(semaphore) + ">=" + std::to_string(where.wanted));
  }
  static void trigger() { log("trigger"); }
  static void grid_wait() { log("grid_wait"); }
  static void raise(const stage_link&, spin_failure, const spin_report&) { log("raise"); }
  static void start() {}
  static void begin_tile(tile_coord) {}
  static void work_until(u32, u32) {}
  static void passed(const u32*) {}
  static void finish() {}
};

constexpr operand<0> A;
constexpr operand<1> B;
constexpr tile_extent grid{2, 6, 1};
constexpr row_dependence rows{.matrix = {2, 6},
                              .producer_tile = {1, 1},
                              .consumer_rows = 1,
                              .step_cols = 2,
                              .consumer_cols = 6};

template <class Policy, tile_source Source = tile_source::block_index>
using Both =
    CuStage<RowMajor, inputs<reads<0, Policy, row_dependence>>, outputs<RowSync, TileSync>, Source>;

/// A stage's view, made by hand.
template <class Stage> class fixture {
public:
  using view = typename Stage::template ref<tracing_backend>;
  static_assert(std::is_trivially_copyable_v<view>); // it is passed to kernels by value

  explicit fixture(u32 duties) {
    ref.link.duties = duties;
    ref.link.tiles = static_cast<u32>(grid.count());
    ref.link.tickets = 12;
    ref.grid = grid;
    input().policy = decltype(input().policy){grid};
    input().dependence = rows;
    input().semaphores = words.data();
    row_output().policy = {grid};
    tile_output().policy = {grid};
    tracing_backend::semaphores = words.data();
    play(0, 0, 0);
  }
  /// From now on this thread, of a block that draws ticket `ticket` of run `run`.
  void play(u32 thread, u32 run, u32 ticket) {
    tracing_backend::trace.clear();
    tracing_backend::thread = thread;
    tracing_backend::block = ticket;
    tracing_backend::drawn = (u64{run} << 32) | ticket;
  }
  auto& input() { return detail::find_input<0>(ref); }
  output_ref<0, RowSync>& row_output() { return ref; }
  output_ref<1, TileSync>& tile_output() { return ref; }

  view ref{};
  std::vector<u32> words = std::vector<u32>(64, 0);
};

std::string taken() { return std::exchange(tracing_backend::trace, {}); }

TEST(StageRef, StartTriggersFirstAndDrawsOnceABlock) {
  fixture<Both<RowSync>> stage(duty::triggers | duty::starts | duty::draws);
  stage.ref.start();
  EXPECT_EQ(taken(), "trigger started draw");
  stage.play(5, 0, 0);
  stage.ref.start();
  EXPECT_EQ(taken(), "trigger"); // every thread allows the launch, one draws
}

TEST(StageRef, StartDoesNothingThatIsNotAskedFor) {
  fixture<Both<RowSync>> stage(0);
  stage.ref.start();
  EXPECT_EQ(taken(), "");
}

TEST(StageRef, WaitLooksAtSemaphoresALaneEach) {
  fixture<Both<TileSync>> stage(duty::draws | duty::waits);
  stage.words.assign(64, 1);
  const tile_coord tile{1, 0, 0}; // its row's semaphores are 6 to 11
  for (const auto& [thread, wanted] : {std::pair{0u, "look:6 look:10 sync"},
                                       {1u, "look:7 look:11 sync"},
                                       {3u, "look:9 sync"},
                                       {4u, "sync"},
                                       {63u, "sync"}}) {
    stage.play(thread, 0, 0);
    stage.ref.start();
    taken();
    stage.ref.wait_all(A, tile);
    EXPECT_EQ(taken(), wanted) << "thread " << thread;
  }
}

TEST(StageRef, WaitSpinsOnWhatIsNotThereYet) {
  fixture<Both<RowSync>> stage(duty::draws | duty::waits);
  stage.words[1] = 5 * 6 + 5; // all of five runs and five of six posts
  stage.play(0, 5, 0);
  stage.ref.start();
  taken();
  stage.ref.wait_all(A, {1, 3, 0});
  EXPECT_EQ(taken(), "look:1 spin:1>=36 sync");
}

TEST(StageRef, WaitIsFreeForTheSemaphoresOfTheLastOne) {
  fixture<Both<RowSync>> rows_waited(duty::draws | duty::waits);
  rows_waited.words.assign(64, 6);
  rows_waited.ref.start();
  taken();
  for (u32 step = 0; step < 3; ++step) rows_waited.ref.wait(A, {1, 0, 0}, step);
  EXPECT_EQ(taken(), "look:1 sync");
  rows_waited.ref.wait(A, {0, 0, 0}, 0);
  EXPECT_EQ(taken(), "look:0 sync");

  fixture<Both<TileSync>> tiles_waited(duty::draws | duty::waits);
  tiles_waited.words.assign(64, 1);
  tiles_waited.ref.start();
  taken();
  tiles_waited.ref.wait(A, {1, 0, 0}, 0);
  EXPECT_EQ(taken(), "look:6 sync"); // the other tile of the step is lane 1's
  tiles_waited.ref.wait(A, {1, 5, 0}, 0);
  EXPECT_EQ(taken(), "");
  tiles_waited.ref.wait(A, {1, 5, 0}, 1);
  EXPECT_EQ(taken(), "look:8 sync");
}

TEST(StageRef, WaitAheadTellsTheFirstStepThatIsNotThereYet) {
  fixture<Both<TileSync>> stage(duty::draws | duty::waits);
  tracing_backend::lanes = 1; // this thread looks at all
  stage.words.assign(64, 1);
  stage.words[10] = 0; // the first of step 2
  stage.ref.start();
  taken();
  EXPECT_EQ(stage.ref.wait_ahead(A, {1, 0, 0}, 0), 2u);
  EXPECT_EQ(taken(), "look:6 look:7 look:8 look:9 look:10 tell");
  EXPECT_EQ(stage.ref.wait_ahead(A, {1, 0, 0}, 2), no_step); // its own step it waits for
  EXPECT_EQ(taken(), "look:10 spin:10>=1 look:11 tell");
  tracing_backend::lanes = 4;
  stage.play(2, 0, 0);
  stage.ref.start();
  stage.ref.wait_ahead(A, {1, 0, 0}, 0);
  EXPECT_EQ(taken(), "look:10 tell"); // its step is the third, which it does not wait for
}

TEST(StageRef, WaitAheadIsAWaitWhereOneCoversTheTile) {
  fixture<Both<RowSync>> stage(duty::draws | duty::waits);
  stage.words.assign(64, 6);
  stage.ref.start();
  taken();
  EXPECT_EQ(stage.ref.wait_ahead(A, {1, 0, 0}, 0), no_step);
  EXPECT_EQ(taken(), "look:1 sync");
  EXPECT_EQ(stage.ref.wait_ahead(A, {1, 4, 0}, 0), no_step);
  EXPECT_EQ(stage.ref.wait_ahead(B, {1, 4, 0}, 0), no_step); // no dependence
  stage.input().semaphores = nullptr;                        // its producer is complete
  EXPECT_EQ(stage.ref.wait_ahead(A, {0, 0, 0}, 0), no_step);
  EXPECT_EQ(taken(), "");
  stage.input().grid_wait = true;
  EXPECT_EQ(stage.ref.wait_ahead(A, {0, 0, 0}, 0), no_step);
  EXPECT_EQ(taken(), "grid_wait");
}

TEST(StageRef, StartForgetsWhatAnEarlierUseHadWaitedFor) {
  fixture<Both<RowSync>> stage(duty::draws | duty::waits);
  stage.words.assign(64, 6);
  stage.input().passed = RowSync{grid}.guards(rows.reads({1, 0, 0}));
  stage.ref.start();
  taken();
  stage.ref.wait_all(A, {1, 0, 0});
  EXPECT_EQ(taken(), "look:1 sync");
}

TEST(StageRef, WaitIsNothingWithoutADependenceOrWhereOrderSuffices) {
  fixture<Both<RowSync>> stage(duty::draws | duty::waits);
  stage.ref.start();
  taken();
  stage.ref.wait(B, {0, 0, 0}, 0);
  stage.ref.wait_all(B, {0, 0, 0});
  static_assert(fixture<Both<RowSync>>::view::declares(A) &&
                !fixture<Both<RowSync>>::view::declares(B));
  stage.input().semaphores = nullptr; // its producer is complete
  stage.ref.wait_all(A, {0, 0, 0});
  fixture<Both<RowSync>> serial(0);
  serial.ref.wait_all(A, {0, 0, 0});
  EXPECT_EQ(taken(), "");
}

TEST(StageRef, WaitForAGridIsMadeByEveryThread) {
  fixture<Both<GridSync>> stage(duty::waits);
  stage.input().grid_wait = true;
  for (const u32 thread : {0u, 3u, 40u}) {
    stage.play(thread, 0, 0);
    stage.ref.wait_all(A, {0, 0, 0});
    EXPECT_EQ(taken(), "grid_wait");
  }
}

TEST(StageRef, PostReleasesBehindTheBarrierAndOnceABlock) {
  fixture<Both<RowSync>> stage(duty::posts);
  stage.row_output().semaphores = stage.words.data();
  stage.tile_output().semaphores = stage.words.data() + 20;
  stage.ref.post({1, 2, 0});
  EXPECT_EQ(taken(), "sync post:1 post:28");
  stage.tile_output().semaphores = nullptr; // nobody looks at this set
  stage.ref.post({1, 2, 0});
  EXPECT_EQ(taken(), "sync post:1");
  stage.play(9, 0, 0);
  stage.ref.post({1, 2, 0});
  EXPECT_EQ(taken(), "sync");
  stage.play(32, 0, 0);
  stage.ref.post({1, 2, 0}, by_warp{}); // the first lane of its warp
  EXPECT_EQ(taken(), "sync post:1");
  fixture<Both<RowSync>> unread(0);
  unread.ref.post({1, 2, 0});
  EXPECT_EQ(taken(), "");
}

TEST(StageRef, TheLastTicketOpensTheNextRunAndHoldsTheStageOpen) {
  fixture<Both<RowSync>> stage(duty::draws | duty::stays);
  stage.play(0, 3, 10);
  stage.ref.start();
  taken();
  stage.ref.finish();
  EXPECT_EQ(taken(), "");
  stage.play(0, 3, 11); // of 12
  stage.ref.start();
  taken();
  stage.ref.finish();
  EXPECT_EQ(taken(), "add:" + std::to_string((u64{1} << 32) - 12) + " grid_wait");
  stage.play(7, 3, 11);
  stage.ref.start();
  stage.ref.finish();
  EXPECT_EQ(taken(), "");
}

TEST(StageRef, BlockZeroHoldsAStageOpenThatDrawsNothing) {
  fixture<Both<RowSync>> stage(duty::stays);
  stage.play(0, 0, 0);
  stage.ref.finish();
  EXPECT_EQ(taken(), "grid_wait");
  stage.play(0, 0, 4);
  stage.ref.finish();
  EXPECT_EQ(taken(), "");
}

TEST(StageRef, ATicketPastTheRunsLastIsAnError) {
  fixture<Both<RowSync>> stage(duty::draws);
  stage.play(0, 0, 12);
  stage.ref.start();
  taken();
  stage.ref.finish();
  EXPECT_EQ(taken(), "raise");
}

TEST(StageRef, ABlockTakesItsOwnTileOnce) {
  fixture<Both<RowSync>> stage(0);
  stage.play(0, 0, 7);
  stage.ref.start();
  const claimed_tile tile = stage.ref.tile();
  ASSERT_TRUE(tile);
  EXPECT_EQ(*tile, (tile_coord{1, 1, 0}));
  EXPECT_FALSE(stage.ref.tile());
  stage.play(0, 0, 12); // a block of a grid that was rounded up
  stage.ref.start();
  EXPECT_FALSE(stage.ref.tile());
}

TEST(StageRef, ABlockClaimsUntilItsFirstInvalidTicket) {
  fixture<Both<RowSync, tile_source::counter>> stage(duty::draws);
  stage.ref.link.tickets = 15; // three blocks
  stage.play(0, 2, 8);
  stage.ref.start();
  EXPECT_EQ(taken(), "");
  EXPECT_EQ(*stage.ref.tile(), (tile_coord{1, 2, 0}));
  EXPECT_EQ(taken(), "draw share");
  stage.play(6, 2, 11);
  EXPECT_EQ(*stage.ref.tile(), (tile_coord{1, 5, 0}));
  EXPECT_EQ(taken(), "share"); // what the first thread drew
  stage.play(0, 2, 14);
  EXPECT_FALSE(stage.ref.tile());
  EXPECT_EQ(taken(), "draw share add:" + std::to_string((u64{1} << 32) - 15));
}

TEST(StageRef, ForEachTileIsTheLoopOverTiles) {
  const auto visited = [](auto& stage) {
    std::string tiles;
    stage.ref.for_each_tile([&](tile_coord tile) { tiles += to_string(tile); });
    return tiles;
  };
  fixture<Both<RowSync>> own(duty::stays);
  own.play(0, 0, 7);
  EXPECT_EQ(visited(own), "(1, 1, 0)");
  own.play(0, 0, 12);
  EXPECT_EQ(visited(own), "");
  own.play(0, 0, 0);
  EXPECT_EQ(visited(own), "(0, 0, 0)");
  EXPECT_EQ(taken(), "grid_wait"); // it finishes as well
  fixture<Both<RowSync, tile_source::counter>> claimed(duty::draws);
  claimed.play(0, 2, 12);
  claimed.ref.link.tickets = 15;
  EXPECT_EQ(visited(claimed), "");
  EXPECT_EQ(taken(), "draw share");
}

TEST(Semaphores, CompareAcrossTheWrap) {
  static_assert(reached(5, 5) && reached(6, 5) && !reached(4, 5));
  static_assert(reached(2, 0xfffffffe) && !reached(0xfffffffe, 2));
  static_assert(wanted_in_run(0xffffffff, 7) == 0); // 2^32 runs: where it began
  static_assert(wanted_in_run(0xfffffffe, 7) == u32{0} - 7);
}

} // namespace
} // namespace cusync
