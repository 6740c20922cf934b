// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include <cusync/chain.hpp>
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/order/grouped_row_major.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/batched_row_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace cusync {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr operand<0> A;
constexpr operand<1> R;
constexpr row_dependence square{.matrix = {2, 2},
                                .producer_tile = {1, 1},
                                .consumer_rows = 1,
                                .step_cols = 1,
                                .consumer_cols = 2};
constexpr tile_extent grid{2, 2, 1};

/// Reads through A and R, and posts rows.
using Link =
    CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>, reads<1, RowSync, row_dependence>>,
            outputs<RowSync>>;

struct sealed_chain : chain {
  using chain::seal;
};

TEST(Chain, RefusesGridsThatCannotBeCounted) {
  chain chain;
  EXPECT_THAT(
      refusal_of([&] {
        chain.stage<Link>("huge", tile_extent{65536, 32768, 1}, RowMajor{});
      }),
      AllOf(HasSubstr("stage 'huge'"), HasSubstr("65536 x 32768 x 1"), HasSubstr("larger tiles")));
  EXPECT_THAT(refusal_of([&] {
                chain.stage<Link>("wraps", tile_extent{65536, 32768, 2}, RowMajor{});
              }),
              HasSubstr("65536 x 32768 x 2"));
  using Claiming = CuStage<RowMajor, inputs<>, outputs<>, tile_source::counter>;
  EXPECT_THAT(refusal_of([&] {
                chain.stage<Claiming>("blocks", tile_extent{2, 2, 1}, RowMajor{}, {0x7ffffffe});
              }),
              AllOf(HasSubstr("2147483646 blocks"), HasSubstr("tickets")));
  EXPECT_TRUE(chain.stages().empty());
}

TEST(Chain, RefusesFewerBlocksThanTilesWithoutACounter) {
  chain chain;
  EXPECT_THAT(refusal_of([&] { chain.stage<Link>("few", grid, RowMajor{}, {3}); }),
              AllOf(HasSubstr("3 blocks for 4 tiles"), HasSubstr("tile_source::counter")));
  EXPECT_EQ(chain.stage<Link>("more", grid, RowMajor{}, {5}).blocks(),
            5u); // a grid that is rounded up
}

struct SameTileOrder {
  tile_coord tile_at(u32, tile_extent) const { return {}; }
};
TEST(Chain, RefusesAnOrderThatIsNoPermutation) {
  chain chain;
  using Stage = CuStage<SameTileOrder, inputs<>, outputs<>>;
  EXPECT_THAT(refusal_of([&] { chain.stage<Stage>("same", grid, SameTileOrder{}); }),
              AllOf(HasSubstr("no permutation of the grid 2 x 2 x 1"), HasSubstr("index 1")));
  using Grouped = CuStage<GroupedRowMajor, inputs<>, outputs<>>;
  EXPECT_THAT(refusal_of([&] { chain.stage<Grouped>("groups", grid, GroupedRowMajor{0}); }),
              HasSubstr("GroupedRowMajor.group_rows is 0"));
}

TEST(Chain, RefusesADependenceOfOtherGrids) {
  chain chain;
  auto& first = chain.stage<Link>("first", grid, RowMajor{});
  auto& second = chain.stage<Link>("second", grid, RowMajor{});
  row_dependence reads = square;
  reads.producer_tile = {2, 1};
  EXPECT_THAT(refusal_of([&] { chain.dependency<RowSync>(first, second, A, reads); }),
              AllOf(HasSubstr("stage 'first' has grid 2 x 2 x 1"),
                    HasSubstr("producer grid of 1 x 2 x 1")));
  reads = square;
  reads.consumer_cols = 3;
  EXPECT_THAT(refusal_of([&] { chain.dependency<RowSync>(first, second, A, reads); }),
              AllOf(HasSubstr("stage 'second' has grid 2 x 2 x 1"),
                    HasSubstr("consumer grid of 2 x 3 x 1")));
  reads = square;
  reads.step_cols = 0;
  EXPECT_THAT(refusal_of([&] { chain.dependency<RowSync>(first, second, A, reads); }),
              HasSubstr("step_cols is 0"));
}

TEST(Chain, RefusesASecondProducerOfOneOperand) {
  chain chain;
  auto& first = chain.stage<Link>("first", grid, RowMajor{});
  auto& other = chain.stage<Link>("other", grid, RowMajor{});
  auto& last = chain.stage<Link>("last", grid, RowMajor{});
  chain.dependency<RowSync>(first, last, A, square);
  chain.dependency<RowSync>(other, last, R, square);
  EXPECT_THAT(refusal_of([&] { chain.dependency<RowSync>(other, last, A, square); }),
              AllOf(HasSubstr("operand 0 of stage 'last'"), HasSubstr("stage 'first' already"),
                    HasSubstr("an operand of its own")));
}

TEST(Chain, RefusesAStageOfAnotherChain) {
  chain ours, theirs;
  auto& first = ours.stage<Link>("first", grid, RowMajor{});
  auto& second = theirs.stage<Link>("second", grid, RowMajor{});
  EXPECT_THAT(refusal_of([&] { ours.dependency<RowSync>(first, second, A, square); }),
              AllOf(HasSubstr("stage 'second'"), HasSubstr("belongs to another chain")));
  EXPECT_THAT(refusal_of([&] { theirs.dependency<RowSync>(first, second, A, square); }),
              HasSubstr("stage 'first'"));
}

TEST(Chain, RefusesACycleAndNamesItsStages) {
  chain chain;
  auto& top = chain.stage<Link>("top", grid, RowMajor{});
  auto& left = chain.stage<Link>("left", grid, RowMajor{});
  auto& right = chain.stage<Link>("right", grid, RowMajor{});
  chain.dependency<RowSync>(top, left, A, square);
  chain.dependency<RowSync>(left, right, A, square);
  chain.dependency<RowSync>(right, left, R, square);
  EXPECT_THAT(refusal_of([&] { chain.topological_order(); }),
              AllOf(HasSubstr("'left', 'right'"), HasSubstr("directed acyclic"),
                    testing::Not(HasSubstr("'top'"))));
  cusync::chain loop;
  auto& self = loop.stage<Link>("self", grid, RowMajor{});
  loop.dependency<RowSync>(self, self, A, square);
  EXPECT_THAT(refusal_of([&] { loop.topological_order(); }), HasSubstr("'self'"));
}

TEST(Chain, PutsProducersAheadOfTheirConsumers) {
  chain chain;
  auto& last = chain.stage<Link>("last", grid, RowMajor{});
  auto& middle = chain.stage<Link>("middle", grid, RowMajor{});
  auto& first = chain.stage<Link>("first", grid, RowMajor{});
  chain.dependency<RowSync>(first, middle, A, square);
  chain.dependency<RowSync>(middle, last, A, square);
  chain.dependency<RowSync>(first, last, R, square);
  std::vector<std::string> names;
  for (const any_stage* stage : chain.topological_order()) names.push_back(stage->name());
  EXPECT_THAT(names, testing::ElementsAre("first", "middle", "last"));
}

TEST(Chain, SharesSemaphoresOfEqualPolicies) {
  using Producer = CuStage<RowMajor, inputs<>, outputs<BatchedRowSync, BatchedRowSync>>;
  using Consumer = CuStage<RowMajor, inputs<reads<0, BatchedRowSync, row_dependence>>, outputs<>>;
  sealed_chain chain;
  auto& first = chain.stage<Producer>("first", grid, RowMajor{});
  std::vector<Consumer*> consumers;
  for (u32 i = 0; i < 4; ++i)
    consumers.push_back(&chain.stage<Consumer>("consumer " + std::to_string(i), grid, RowMajor{}));
  for (const u32 i : {0u, 1u})
    chain.dependency(first, *consumers[i], A, square, BatchedRowSync{grid, 1});
  chain.dependency(first, *consumers[2], A, square, BatchedRowSync{grid, 2});
  EXPECT_EQ(consumers[0]->declared_inputs()[0].output, consumers[1]->declared_inputs()[0].output);
  EXPECT_NE(consumers[0]->declared_inputs()[0].output, consumers[2]->declared_inputs()[0].output);
  EXPECT_THAT(refusal_of([&] {
                chain.dependency(first, *consumers[3], A, square, BatchedRowSync{grid, 3});
              }),
              AllOf(HasSubstr("stage 'first' has no set of semaphores left"),
                    HasSubstr("once more in its outputs<>")));
  chain.seal();
  EXPECT_EQ(chain.semaphore_total(), 2u + 1u);
  EXPECT_EQ(first.declared_outputs()[0].offset, 0u);
  EXPECT_EQ(first.declared_outputs()[1].offset, 2u);
}

TEST(Chain, IsSealedByItsFirstLaunch) {
  sealed_chain chain;
  EXPECT_THAT(refusal_of([&] { chain.seal(); }), HasSubstr("no stage"));
  auto& first = chain.stage<Link>("first", grid, RowMajor{});
  auto& second = chain.stage<Link>("second", grid, RowMajor{});
  chain.seal();
  EXPECT_THAT(refusal_of([&] { chain.stage<Link>("third", grid, RowMajor{}); }),
              HasSubstr("launched already"));
  EXPECT_THAT(refusal_of([&] { chain.dependency<RowSync>(first, second, A, square); }),
              HasSubstr("launched already"));
}

// What simulator and checker ask a stage, whatever its types.
TEST(Stage, AnswersForItsPoliciesAndDependences) {
  using Producer = CuStage<RowMajor, inputs<>, outputs<RowSync, TileSync>>;
  using Consumer =
      CuStage<RowMajor,
              inputs<reads<0, RowSync, row_dependence>, reads<1, TileSync, row_dependence>>,
              outputs<>>;
  chain chain;
  auto& first = chain.stage<Producer>("first", grid, RowMajor{});
  auto& second = chain.stage<Consumer>("second", grid, RowMajor{});
  chain.dependency<RowSync>(first, second, A, square);
  chain.dependency<TileSync>(first, second, R, square);
  const any_stage& producer = first;
  const any_stage& consumer = second;
  for (u32 position = 0; position < 4; ++position) {
    const tile_coord tile = RowMajor{}.tile_at(position, grid);
    EXPECT_EQ(producer.tile_at(position), tile);
    EXPECT_EQ(producer.semaphore_of(0, tile), tile.row);
    EXPECT_EQ(producer.semaphore_of(1, tile), tile.row * 2 + tile.col);
    EXPECT_EQ(consumer.steps(0, tile).end, 2u);
    EXPECT_EQ(consumer.guards(0, tile), (RowSync{grid}.guards(square.reads(tile))));
    EXPECT_EQ(consumer.guards(1, tile), (TileSync{grid}.guards(square.reads(tile))));
    EXPECT_EQ(consumer.guards(1, tile, 1), (TileSync{grid}.guards(square.reads(tile, 1))));
  }
  EXPECT_EQ(producer.posts_expected(0, 1), 2u);
  EXPECT_EQ(producer.posts_expected(1, 3), 1u);
}

} // namespace
} // namespace cusync
