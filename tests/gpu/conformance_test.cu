// SPDX-License-Identifier: MIT
// Every policy x order x mode on the GPU: integer data compared exactly, intermediates poisoned, every
// third producer tile asleep ahead of its stores. The virtual GPU runs the same suite.

#include "gpu_test.cuh"

#include <cusync/dependence/conv2d_dependence.hpp>
#include <cusync/dependence/grid_dependence.hpp>
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/dependence/strided_dependence.hpp>
#include <cusync/dependence/tile_dependence.hpp>
#include <cusync/order/column_major.hpp>
#include <cusync/order/grouped_row_major.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/order/strided_row_major.hpp>
#include <cusync/policy/batched_row_sync.hpp>
#include <cusync/policy/conv2d_tile_sync.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/no_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/strided_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

namespace cusync::test {
namespace {

struct variant {
  launch_mode mode = launch_mode::pdl;
  bool captured = false;
  stage_options producer{};
  stage_options consumer{};
};

const row_dependence gemm_reads{{700, 900}, {64, 128}, 128, 32, 9, 1, 1}; // unequal heights, tails
const row_dependence split_reads{{300, 600}, {128, 64}, 64, 32, 5, 3, 2}; // split-K on both sides
const tile_dependence residual_reads{{500, 600}, {96, 64}, {64, 160}, 1, 1};
const strided_dependence attention_reads{{24, 36, 1}, 12};
const grid_dependence softmax_reads{{12, 12, 1}, {10, 10, 1}};
const conv2d_dependence conv_reads{3, 14, 14, 96, 3, 3, 1, 1, 1, {32, 48}, 24, 3, 32};
const conv2d_dependence strided_conv_reads{2, 17, 19, 64, 5, 5, 2, 2, 1, {40, 32}, 16, 2, 32};

/// Producer -> consumer, twice as many runs as one needs to see a counter that is off.
template <tile_source Source = tile_source::block_index, class ProducerOrder, class ConsumerOrder,
          class Policy, class Dependence>
void expect_exact(ProducerOrder producer_order, ConsumerOrder consumer_order, const Policy& policy,
                  const Dependence& reads_of, variant how) {
  using producer_stage = CuStage<ProducerOrder, inputs<>, outputs<Policy>, Source>;
  using consumer_stage =
      CuStage<ConsumerOrder, inputs<reads<0, Policy, Dependence>>, outputs<>, Source>;
  const tile_extent from = reads_of.producer(), to = reads_of.consumer();
  words seed(1), middle(from.count() * lane_words), out(to.count() * lane_words);
  CuSync chain(in_mode(how.mode));
  auto& producer = chain.stage<producer_stage>("producer", from, producer_order, how.producer);
  auto& consumer = chain.stage<consumer_stage>("consumer", to, consumer_order, how.consumer);
  chain.dependency(producer, consumer, A, reads_of, policy);
  auto produce = chain.kernel(producer, sum_kernel<gpu_ref<producer_stage>>, 64);
  auto consume = chain.kernel(consumer, sum_kernel<gpu_ref<consumer_stage>>, 64);
  chain.prepare();
  const sum_arguments first{.seed = seed.data(), .out = middle.data(), .sleep_ns = 20'000};
  const sum_arguments second{.seed = seed.data(), .a = middle.data(), .out = out.data()};
  const auto enqueue = [&](cudaStream_t stream) {
    chain.launch(stream, produce(first), consume(second));
  };
  stream user;
  std::optional<graph> captured;
  if (how.captured) captured.emplace(enqueue);
  for (u32 run = 0; run < 6; ++run) {
    middle.poison(user);
    out.poison(user);
    seed.set(run * 1000, user);
    // Eager and replayed runs mixed.
    if (captured && run % 3 != 2)
      captured->launch(user);
    else
      enqueue(user);
    chain.synchronize(user);
    ASSERT_EQ(out.read(), next_stage_words(first_stage_words(from, run * 1000), reads_of))
        << "run " << run;
  }
}

template <class Policy, class Dependence>
void expect_exact_in_every_order(const Policy& policy, const Dependence& reads_of, variant how) {
  const auto with = [&](auto producer_order, auto consumer_order) {
    expect_exact(producer_order, consumer_order, policy, reads_of, how);
  };
  with(RowMajor{}, RowMajor{});
  with(ColumnMajor{}, RowMajor{});
  with(RowMajor{}, ColumnMajor{});
  with(StridedRowMajor{3}, GroupedRowMajor{4});
}

class Conformance : public testing::TestWithParam<std::tuple<launch_mode, bool>> {
protected:
  variant how() const { return {std::get<0>(GetParam()), std::get<1>(GetParam())}; }
};

TEST_P(Conformance, RowSync) {
  expect_exact_in_every_order(derive<RowSync>(gemm_reads), gemm_reads, how());
}
TEST_P(Conformance, TileSync) {
  expect_exact_in_every_order(derive<TileSync>(gemm_reads), gemm_reads, how());
}
TEST_P(Conformance, BatchedRowSync) {
  expect_exact_in_every_order(BatchedRowSync{gemm_reads.producer(), 3}, gemm_reads, how());
}
TEST_P(Conformance, GridSync) {
  expect_exact_in_every_order(derive<GridSync>(gemm_reads), gemm_reads, how());
}
TEST_P(Conformance, SplitKPostsEverySlice) {
  expect_exact_in_every_order(derive<RowSync>(split_reads), split_reads, how());
  expect_exact_in_every_order(derive<TileSync>(split_reads), split_reads, how());
}
TEST_P(Conformance, ResidualOfOtherTileShape) {
  expect_exact_in_every_order(derive<TileSync>(residual_reads), residual_reads, how());
}
TEST_P(Conformance, StridedSync) {
  expect_exact_in_every_order(StridedSync{attention_reads.producer(), 12}, attention_reads, how());
}
TEST_P(Conformance, EverythingReadByEveryTile) {
  expect_exact_in_every_order(derive<GridSync>(softmax_reads), softmax_reads, how());
  expect_exact_in_every_order(derive<RowSync>(softmax_reads), softmax_reads, how());
}
TEST_P(Conformance, Conv2DTileSyncWithHalo) {
  expect_exact_in_every_order(derive<Conv2DTileSync>(conv_reads), conv_reads, how());
  expect_exact_in_every_order(derive<RowSync>(strided_conv_reads), strided_conv_reads, how());
}
TEST_P(Conformance, BlocksThatTakeSeveralTiles) {
  variant persistent = how();
  persistent.producer.blocks = 10;
  persistent.consumer.blocks = 7;
  expect_exact<tile_source::counter>(RowMajor{}, RowMajor{}, derive<RowSync>(gemm_reads),
                                     gemm_reads, persistent);
}
TEST_P(Conformance, TilesClaimedFromTheCounter) {
  expect_exact<tile_source::counter>(RowMajor{}, RowMajor{}, derive<TileSync>(gemm_reads),
                                     gemm_reads, how());
}
TEST_P(Conformance, GridsRoundedUp) {
  variant rounded = how();
  rounded.producer.blocks = gemm_reads.producer().rows * gemm_reads.producer().cols + 5;
  rounded.consumer.blocks = gemm_reads.consumer().rows * gemm_reads.consumer().cols + 3;
  expect_exact(RowMajor{}, RowMajor{}, derive<RowSync>(gemm_reads), gemm_reads, rounded);
}

INSTANTIATE_TEST_SUITE_P(Modes, Conformance,
                         testing::Combine(testing::Values(launch_mode::serial, launch_mode::pdl,
                                                          launch_mode::streams),
                                          testing::Bool()),
                         [](const auto& info) {
                           return std::string(name_of(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "_graph" : "_eager");
                         });

/// A user's own: two semaphores, for even and odd rows.
struct ParitySync {
  tile_extent producer;
  CUSYNC_HOST_DEVICE constexpr u32 semaphore_count() const { return 2; }
  CUSYNC_HOST_DEVICE constexpr u32 semaphore_of(tile_coord tile) const { return tile.row % 2; }
  CUSYNC_HOST_DEVICE constexpr u32 posts_expected(u32 semaphore) const {
    return (producer.rows + 1 - semaphore) / 2 * producer.cols * producer.slices;
  }
  CUSYNC_HOST_DEVICE constexpr semaphore_range guards(tile_range range) const {
    return {range.rows() == 1 ? range.row_begin % 2 : 0, 1, 0, range.rows() < 2 ? range.rows() : 2,
            1};
  }
  friend constexpr bool operator==(ParitySync, ParitySync) = default;
};

/// A user's own: from the last tile to the first.
struct Backwards {
  CUSYNC_HOST_DEVICE constexpr tile_coord tile_at(u32 index, tile_extent grid) const {
    return RowMajor{}.tile_at(static_cast<u32>(grid.count()) - 1 - index, grid);
  }
};

TEST_P(Conformance, PolicyAndOrderOfOnesOwn) {
  expect_exact(Backwards{}, RowMajor{}, ParitySync{gemm_reads.producer()}, gemm_reads, how());
}

TEST(ConformanceSerial, NoSync) {
  expect_exact(RowMajor{}, RowMajor{}, derive<NoSync>(gemm_reads), gemm_reads,
               {launch_mode::serial});
}

/// head -> left, right -> join, the join reading both; and a stage without tiles in between.
void expect_diamond_exact(launch_mode mode) {
  const tile_extent grid{21, 9, 1};
  const tile_dependence same{{21, 9}, {1, 1}, {1, 1}};
  const row_dependence row{{21, 9}, {1, 1}, 1, 1, 9};
  const grid_dependence all{grid, grid};
  using head_stage = CuStage<RowMajor, inputs<>, outputs<RowSync, GridSync, TileSync>>;
  using left_stage =
      CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<TileSync>>;
  using right_stage =
      CuStage<ColumnMajor, inputs<reads<0, GridSync, grid_dependence>>, outputs<RowSync>>;
  using join_stage =
      CuStage<RowMajor,
              inputs<reads<0, TileSync, tile_dependence>, reads<1, RowSync, row_dependence>>,
              outputs<>>;
  words seed(1), head_out(189 * lane_words), left_out(189 * lane_words),
      right_out(189 * lane_words), join_out(189 * lane_words);
  CuSync chain(in_mode(mode));
  auto& join = chain.stage<join_stage>("join", grid, RowMajor{}); // declared first, launched last
  auto& head = chain.stage<head_stage>("head", grid, RowMajor{});
  auto& left = chain.stage<left_stage>("left", grid, RowMajor{});
  auto& right = chain.stage<right_stage>("right", grid, ColumnMajor{});
  chain.dependency<RowSync>(head, left, A, row);
  chain.dependency<GridSync>(head, right, A, all);
  chain.dependency<TileSync>(left, join, A, same);
  chain.dependency<RowSync>(right, join, B, row);
  auto run_head = chain.kernel(head, sum_kernel<gpu_ref<head_stage>>, 64);
  auto run_left = chain.kernel(left, sum_kernel<gpu_ref<left_stage>>, 64);
  auto run_right = chain.kernel(right, sum_kernel<gpu_ref<right_stage>>, 64);
  auto run_join = chain.kernel(join, sum_kernel<gpu_ref<join_stage>>, 64);
  stream user;
  for (u32 run = 0; run < 50; ++run) {
    for (words* each : {&head_out, &left_out, &right_out, &join_out}) each->poison(user);
    seed.set(run, user);
    chain.launch(user, run_head({.seed = seed.data(), .out = head_out.data(), .sleep_ns = 10'000}),
                 run_left({.a = head_out.data(), .out = left_out.data(), .sleep_ns = 5'000}),
                 run_right({.a = head_out.data(), .out = right_out.data()}),
                 run_join({.a = left_out.data(), .b = right_out.data(), .out = join_out.data()}));
    chain.synchronize(user);
    const auto head_words = first_stage_words(grid, run);
    std::vector<u32> expected(189 * lane_words, 1);
    add_sums(expected, next_stage_words(head_words, row), same);
    add_sums(expected, next_stage_words(head_words, all), row);
    ASSERT_EQ(join_out.read(), expected) << "run " << run;
  }
}

TEST(Diamond, Serial) { expect_diamond_exact(launch_mode::serial); }
TEST(Diamond, Pdl) { expect_diamond_exact(launch_mode::pdl); }
TEST(Diamond, Streams) { expect_diamond_exact(launch_mode::streams); }
TEST(Diamond, Automatic) { expect_diamond_exact(launch_mode::automatic); }

} // namespace
} // namespace cusync::test
