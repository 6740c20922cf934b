// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include <cusync/dependence/row_dependence.hpp>
#include <cusync/launch_plan.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/no_sync.hpp>
#include <cusync/policy/row_sync.hpp>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace cusync {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr operand<0> A;
constexpr operand<1> R;
constexpr auto by_order = wait_kind::none;
constexpr auto by_grid = wait_kind::grid;
constexpr auto by_semaphores = wait_kind::semaphores;

row_dependence of_rows(u32 count) {
  return {.matrix = {count, 2},
          .producer_tile = {1, 1},
          .consumer_rows = 1,
          .step_cols = 1,
          .consumer_cols = 2};
}

template <class First, class Second, tile_source Source = tile_source::block_index>
using Stage =
    CuStage<RowMajor, inputs<reads<0, First, row_dependence>, reads<1, Second, row_dependence>>,
            outputs<RowSync, GridSync, NoSync>, Source>;
using Rows = Stage<RowSync, RowSync>;

TEST(LaunchPlan, OfSerialStagesNeedsNothingButOrder) {
  chain chain;
  auto& first = chain.stage<Rows>("first", {2, 2, 1}, RowMajor{});
  auto& second = chain.stage<Rows>("second", {2, 2, 1}, RowMajor{});
  chain.dependency<RowSync>(first, second, A, of_rows(2));
  const launch_plan plan = plan_launch(chain, launch_mode::serial);
  ASSERT_EQ(plan.stages.size(), 2u);
  for (const stage_plan& stage : plan.stages) {
    EXPECT_THAT(stage.waits, ElementsAre(by_order, by_order));
    EXPECT_EQ(stage.duties(), 0u);
  }
}

TEST(LaunchPlan, OfAPdlChainTriggersAllButTheLastAndHoldsAllButTheFirst) {
  chain chain;
  auto& first = chain.stage<Rows>("first", {2, 2, 1}, RowMajor{});
  auto& second = chain.stage<Rows>("second", {2, 2, 1}, RowMajor{});
  auto& third = chain.stage<Rows>("third", {2, 2, 1}, RowMajor{});
  chain.dependency<RowSync>(first, second, A, of_rows(2));
  chain.dependency<RowSync>(second, third, A, of_rows(2));
  chain.dependency<RowSync>(first, third, R, of_rows(2));
  const launch_plan plan = plan_launch(chain, launch_mode::pdl);
  ASSERT_EQ(plan.stages.size(), 3u);
  EXPECT_EQ(plan.stages[0].duties(), duty::triggers | duty::posts);
  EXPECT_EQ(plan.stages[1].duties(),
            duty::triggers | duty::stays | duty::draws | duty::waits | duty::posts);
  EXPECT_EQ(plan.stages[2].duties(), duty::stays | duty::draws | duty::waits);
  EXPECT_THAT(plan.stages[2].waits, ElementsAre(by_semaphores, by_semaphores));
  EXPECT_THAT(plan.stages[0].posted, ElementsAre(true, false, false));
}

TEST(LaunchPlan, OfStreamsNeitherTriggersNorHolds) {
  chain chain;
  auto& first = chain.stage<Rows>("first", {2, 2, 1}, RowMajor{});
  auto& second = chain.stage<Rows>("second", {2, 2, 1}, RowMajor{});
  chain.dependency<RowSync>(first, second, A, of_rows(2));
  const launch_plan plan = plan_launch(chain, launch_mode::streams);
  EXPECT_EQ(plan.stages[0].duties(), u32{duty::posts});
  EXPECT_EQ(plan.stages[1].duties(), duty::draws | duty::waits);
}

// Behind a whole grid everything further ahead is complete too: one grid wait is all that is needed.
TEST(LaunchPlan, WaitsForTheGridAheadAndForNothingElse) {
  chain chain;
  using Last = Stage<GridSync, RowSync>;
  auto& first = chain.stage<Rows>("first", {2, 2, 1}, RowMajor{});
  auto& second = chain.stage<Rows>("second", {2, 2, 1}, RowMajor{});
  auto& last = chain.stage<Last>("last", {2, 2, 1}, RowMajor{});
  chain.dependency<RowSync>(first, second, A, of_rows(2));
  chain.dependency<GridSync>(second, last, A, of_rows(2));
  chain.dependency<RowSync>(first, last, R, of_rows(2));
  const launch_plan pdl = plan_launch(chain, launch_mode::pdl);
  EXPECT_THAT(pdl.stages[2].waits, ElementsAre(by_grid, by_grid));
  EXPECT_EQ(pdl.stages[2].duties(), duty::stays | duty::waits);
  EXPECT_THAT(pdl.stages[1].posted, ElementsAre(false, false, false));
  const launch_plan streams = plan_launch(chain, launch_mode::streams);
  EXPECT_THAT(streams.stages[2].waits, ElementsAre(by_order, by_semaphores));
  EXPECT_THAT(streams.stages[2].events, ElementsAre(&second));
  EXPECT_TRUE(pdl.stages[2].events.empty());
}

TEST(LaunchPlan, GuardsAWholeGridFurtherAheadByItsOneSemaphore) {
  chain chain;
  using Last = Stage<RowSync, GridSync>;
  auto& first = chain.stage<Rows>("first", {2, 2, 1}, RowMajor{});
  auto& second = chain.stage<Rows>("second", {2, 2, 1}, RowMajor{});
  auto& last = chain.stage<Last>("last", {2, 2, 1}, RowMajor{});
  chain.dependency<RowSync>(first, second, A, of_rows(2));
  chain.dependency<RowSync>(second, last, A, of_rows(2));
  chain.dependency<GridSync>(first, last, R, of_rows(2));
  const launch_plan plan = plan_launch(chain, launch_mode::pdl);
  EXPECT_THAT(plan.stages[2].waits, ElementsAre(by_semaphores, by_semaphores));
  EXPECT_THAT(plan.stages[0].posted, ElementsAre(true, true, false));
}

TEST(LaunchPlan, LeavesOutStagesWithoutTiles) {
  chain chain;
  auto& first = chain.stage<Rows>("first", {2, 2, 1}, RowMajor{});
  chain.stage<Rows>("empty", {0, 2, 1}, RowMajor{});
  auto& last = chain.stage<Rows>("last", {2, 2, 1}, RowMajor{});
  chain.dependency<RowSync>(first, last, A, of_rows(2));
  const launch_plan plan = plan_launch(chain, launch_mode::pdl);
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[1].stage, &last);
  EXPECT_TRUE(plan.stages[1].early);
}

TEST(LaunchPlan, DoesNotWaitForAProducerWithoutTiles) {
  chain chain;
  auto& empty = chain.stage<Rows>("empty", {2, 0, 1}, RowMajor{});
  auto& last = chain.stage<Rows>("last", {2, 2, 1}, RowMajor{});
  chain.dependency<RowSync>(empty, last, A,
                            row_dependence{.matrix = {2, 0},
                                           .producer_tile = {1, 1},
                                           .consumer_rows = 1,
                                           .step_cols = 1,
                                           .consumer_cols = 2});
  const launch_plan plan = plan_launch(chain, launch_mode::pdl);
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_THAT(plan.stages[0].waits, ElementsAre(by_order, by_order));
  EXPECT_EQ(plan.stages[0].duties(), 0u);
}

TEST(LaunchPlan, DrawsTicketsWhereTilesAreClaimed) {
  chain chain;
  using Claiming = Stage<RowSync, RowSync, tile_source::counter>;
  auto& stage = chain.stage<Claiming>("stage", {2, 2, 1}, RowMajor{}, {3});
  EXPECT_EQ(stage.tickets(), 7u); // every block stops at its first invalid one
  for (const launch_mode mode : {launch_mode::serial, launch_mode::pdl, launch_mode::streams})
    EXPECT_EQ(plan_launch(chain, mode).stages[0].duties(), u32{duty::draws});
}

TEST(LaunchPlan, RefusesNoSyncWhereOrderDoesNotKeepItSafe) {
  chain chain;
  using Last = Stage<NoSync, RowSync>;
  auto& first = chain.stage<Rows>("first", {2, 2, 1}, RowMajor{});
  auto& last = chain.stage<Last>("last", {2, 2, 1}, RowMajor{});
  chain.dependency<NoSync>(first, last, A, of_rows(2));
  EXPECT_EQ(refusal_of([&] { plan_launch(chain, launch_mode::serial); }), "accepted");
  EXPECT_THAT(
      refusal_of([&] { plan_launch(chain, launch_mode::pdl); }),
      AllOf(HasSubstr("operand 0 of stage 'last' has policy NoSync"), HasSubstr("mode pdl")));
  EXPECT_THAT(refusal_of([&] { plan_launch(chain, launch_mode::streams); }),
              HasSubstr("mode streams"));
}

} // namespace
} // namespace cusync
