// SPDX-License-Identifier: MIT
// What went wrong for users of similar systems, tried on the virtual GPU.

#include "gemm.hpp"
#include "pair_chain.hpp"

#include <cusync/order/row_major.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>

namespace cusync::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr launch_mode modes[] = {launch_mode::serial, launch_mode::pdl, launch_mode::streams};

sim::schedule in_mode(launch_mode mode) { return {.mode = mode}; }

template <class Policy>
pair_case<Policy, row_dependence> rows_of(element_extent matrix, element_extent tile,
                                          u32 consumer_rows, u32 step, u32 consumer_cols,
                                          u32 slices = 1) {
  const row_dependence reads{.matrix = matrix,
                             .producer_tile = tile,
                             .consumer_rows = consumer_rows,
                             .step_cols = step,
                             .consumer_cols = consumer_cols,
                             .producer_slices = slices};
  return {Policy{reads.producer()}, reads, matrix, tile};
}

/// The text of what `run` throws.
template <class Error, class Run> std::string message_of(Run run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// --- 7: no GPU promises an order of blocks -------------------------------------------------------

TEST(DispatchOrder, DoesNotMatterInAnyMode) {
  for (const auto& [row, col, slices] :
       {std::tuple{1u, 1u, 1u}, {12u, 12u, 3u}, {12u, 1u, 2u}, {1u, 12u, 3u}})
    for (const launch_mode mode : modes)
      for (u32 slots = 1; slots <= 8; ++slots)
        for (const sim::pick dispatch :
             {sim::pick::in_order, sim::pick::reversed, sim::pick::random}) {
          const sim::schedule how{.mode = mode,
                                  .blocks = dispatch,
                                  .stages = dispatch,
                                  .ties = dispatch,
                                  .slots = slots};
          pair_chain<TileSync, row_dependence>(
              rows_of<TileSync>({row, col}, {1, 1}, 1, 1, 12, slices), sim::find_gpu("H200"), how)
              .run(1);
        }
}

TEST(DispatchOrder, DoesNotMatterInAThousandRandomOnes) {
  for (const launch_mode mode : modes) {
    sim::schedule how{.mode = mode,
                      .blocks = sim::pick::random,
                      .stages = sim::pick::random,
                      .ties = sim::pick::random,
                      .slots = 3,
                      .jitter = 1};
    pair_chain<TileSync, row_dependence> pair(rows_of<TileSync>({5, 4}, {1, 1}, 2, 1, 3),
                                              sim::find_gpu("H200"), how);
    for (how.seed = 1; how.seed <= 1000; ++how.seed) {
      pair.chain().reschedule(how);
      pair.run(1);
    }
  }
}

struct ConstantOrder {
  tile_coord tile_at(u32, tile_extent) const { return {}; }
};
struct PastTheEndOrder {
  tile_coord tile_at(u32 index, tile_extent grid) const {
    return RowMajor{}.tile_at(index + 1, grid);
  }
};
struct RepeatingOrder {
  tile_coord tile_at(u32 index, tile_extent grid) const {
    return RowMajor{}.tile_at(index == 4 ? 3 : index, grid);
  }
};
template <class Order> void refuse_order() {
  sim::CuSync chain;
  using Stage = CuStage<Order, inputs<>, outputs<>>;
  EXPECT_THAT(message_of<invalid_argument>([&] {
                chain.stage<Stage>("bad", tile_extent{3, 3, 1}, Order{});
              }),
              HasSubstr("no permutation of the grid 3 x 3 x 1"));
}
TEST(DispatchOrder, OfTilesMustVisitEachOnce) {
  refuse_order<ConstantOrder>();
  refuse_order<PastTheEndOrder>();
  refuse_order<RepeatingOrder>();
}

// --- 28: partial tiles, and sizes where a tile shape changes -------------------------------------

template <class Policy> void expect_exact_at_every_size(launch_mode mode) {
  for (const u32 m : {1u,   2u,   63u,  64u,  65u,  127u,  128u,  129u,  191u,  200u,  255u,
                      256u, 257u, 511u, 512u, 513u, 1023u, 1024u, 1025u, 2047u, 2048u, 2049u})
    for (const u32 k : {15u, 16u, 17u}) {
      const u32 tile_m = m <= 128 ? 64 : 128; // a size at which the tile changes, on one side only
      pair_chain<Policy, row_dependence> pair(rows_of<Policy>({m, k}, {tile_m, 8}, 64, 16, 5),
                                              sim::find_gpu("H200"), in_mode(mode));
      ASSERT_NO_THROW(pair.run(1)) << "M " << m << ", K " << k;
      if (testing::Test::HasFailure()) return;
    }
}
TEST(PartialTiles, AreExactWithRowSync) { expect_exact_at_every_size<RowSync>(launch_mode::pdl); }
TEST(PartialTiles, AreExactWithTileSync) {
  expect_exact_at_every_size<TileSync>(launch_mode::streams);
}

// --- 29: shapes without work, shapes that overflow -----------------------------------------------

TEST(Shapes, WithoutRowsLaunchNothing) {
  for (const launch_mode mode : modes) {
    pair_chain<RowSync, row_dependence> pair(rows_of<RowSync>({0, 8}, {4, 4}, 4, 4, 3),
                                             sim::find_gpu("H200"), in_mode(mode));
    const sim::report report = pair.run(3);
    EXPECT_TRUE(report.stages.empty());
    EXPECT_EQ(report.makespan_ns, 0u);
  }
}

TEST(Shapes, WithoutKGiveZerosAndStillPost) {
  // The first GEMM has K = 0: it writes zeros. The second has K = 0 too where N of the first is 0.
  for (const launch_mode mode : modes)
    for (const u32 between : {0u, 7u}) {
      matrix x({6, 0}, {6, 1}), w1({0, between}, {1, 1}), w2({between, 5}, {1, 1});
      matrix y({6, between}, {2, 3}), z({6, 5}, {4, 2});
      w2.fill(1);
      const gemm first{&x, &w1, nullptr, &y, 4}, second{&y, &w2, nullptr, &z, 4};
      sim::CuSync chain(sim::find_gpu("H200"), in_mode(mode));
      auto& p = chain.stage<CuStage<RowMajor, inputs<>, outputs<RowSync>>>("first", first.grid(),
                                                                           RowMajor{});
      auto& c =
          chain.stage<CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>>(
              "second", second.grid(), RowMajor{});
      chain.dependency<RowSync>(p, c, A, second.reads_a());
      const auto run_first = chain.kernel(p, gemm_kernel{});
      const auto run_second = chain.kernel(c, gemm_kernel{});
      chain.launch(run_first(first), run_second(second));
      for (const double value : z.data) EXPECT_EQ(value, 0.0);
    }
}

TEST(Shapes, ThatCannotBeCountedAreRefusedByName) {
  using Stage = CuStage<RowMajor, inputs<>, outputs<>>;
  sim::CuSync chain;
  for (const tile_extent grid :
       {tile_extent{65536, 32768, 2}, tile_extent{0xffffffff, 0xffffffff, 0xffffffff}})
    EXPECT_THAT(message_of<invalid_argument>([&] { chain.stage<Stage>("huge", grid, RowMajor{}); }),
                AllOf(HasSubstr(std::to_string(grid.rows) + " x " + std::to_string(grid.cols)),
                      HasSubstr("larger tiles")));
}

TEST(Shapes, OfTilesMustNotBeEmpty) {
  using Producer = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
  using Consumer = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;
  sim::CuSync chain;
  auto& p = chain.stage<Producer>("p", {2, 2, 1}, RowMajor{});
  auto& c = chain.stage<Consumer>("c", {2, 2, 1}, RowMajor{});
  row_dependence reads{.matrix = {8, 8},
                       .producer_tile = {4, 4},
                       .consumer_rows = 4,
                       .step_cols = 4,
                       .consumer_cols = 2};
  reads.producer_slices = 0;
  EXPECT_THAT(message_of<invalid_argument>([&] { chain.dependency<RowSync>(p, c, A, reads); }),
              HasSubstr("row_dependence.producer_slices is 0"));
}

// --- 30: split-K ---------------------------------------------------------------------------------

TEST(SplitK, IsCompleteOnlyWithAllSlices) {
  matrix x({10, 13}, {10, 13}), w1({13, 11}, {13, 11}), w2({11, 9}, {11, 9});
  x.fill(1), w1.fill(2), w2.fill(3);
  for (const u32 slices : {1u, 2u, 3u, 4u, 7u})
    for (const launch_mode mode : modes) {
      matrix y({10, 11}, {4, 4}, slices), z({10, 9}, {3, 5}, slices);
      const gemm first{&x, &w1, nullptr, &y, 2}, second{&y, &w2, nullptr, &z, 2}; // 7 and 6 steps
      sim::CuSync chain(sim::find_gpu("H200"),
                        {.mode = mode, .blocks = sim::pick::random, .slots = 5, .jitter = 0.9});
      auto& p = chain.stage<CuStage<RowMajor, inputs<>, outputs<TileSync>>>("first", first.grid(),
                                                                            RowMajor{});
      auto& c =
          chain.stage<CuStage<RowMajor, inputs<reads<0, TileSync, row_dependence>>, outputs<>>>(
              "second", second.grid(), RowMajor{});
      chain.dependency<TileSync>(p, c, A, second.reads_a());
      const auto run_first = chain.kernel(p, gemm_kernel{});
      const auto run_second = chain.kernel(c, gemm_kernel{});
      const matrix wanted_y = first.reference();
      for (u32 run = 0; run < 3; ++run) {
        y.poison(), z.poison();
        chain.launch(run_first(first), run_second(second));
        const matrix wanted_z = second.reference();
        for (u32 row = 0; row < 10; ++row) {
          for (u32 col = 0; col < 11; ++col)
            ASSERT_EQ(y.at(row, col), wanted_y.at(row, col)) << slices;
          for (u32 col = 0; col < 9; ++col)
            ASSERT_EQ(z.at(row, col), wanted_z.at(row, col)) << slices;
        }
      }
    }
}

// --- 33: waits that are never answered -----------------------------------------------------------

/// `RowSync`, but wanting one post too many; `hidden` until its chain has been checked.
struct GreedySync : RowSync {
  static inline bool hidden = false;
  u32 posts_expected(u32 semaphore) const {
    return RowSync::posts_expected(semaphore) + (hidden ? 0 : 1);
  }
  friend bool operator==(GreedySync, GreedySync) = default;
};

template <class Policy> class row_pair {
public:
  using Producer = CuStage<RowMajor, inputs<>, outputs<Policy>>;
  using Consumer = CuStage<RowMajor, inputs<reads<0, Policy, row_dependence>>, outputs<>>;

  explicit row_pair(sim::schedule how)
      : chain(sim::find_gpu("H200"), how),
        p(chain.template stage<Producer>("first", {2, 4, 1}, RowMajor{})),
        c(chain.template stage<Consumer>("second", {2, 4, 1}, RowMajor{})) {}
  void depend() {
    chain.template dependency<Policy>(p, c, A,
                                      row_dependence{.matrix = {2, 4},
                                                     .producer_tile = {1, 1},
                                                     .consumer_rows = 1,
                                                     .step_cols = 1,
                                                     .consumer_cols = 4});
  }
  /// A launch with kernels that leave out posts, or wait and then do something else.
  template <class Post, class Then> sim::report run(Post post, Then then, u64 tile_ns = 1000) {
    const auto produce = [post](auto stage) {
      stage.start();
      while (auto tile = stage.tile())
        if (post(*tile)) stage.post(*tile);
    };
    const auto consume = [then](auto stage) {
      stage.start();
      while (auto tile = stage.tile()) {
        stage.wait_all(A, *tile);
        then(*tile);
      }
    };
    const auto first = chain.kernel(p, produce, {}, {.ns = tile_ns});
    const auto second = chain.kernel(c, consume);
    return chain.launch(first(), second());
  }

  sim::CuSync chain;
  Producer& p;
  Consumer& c;
};

constexpr auto every_tile = [](tile_coord) { return true; };
constexpr auto nothing = [](tile_coord) {};

TEST(Waits, ForOnePostTooManyAreRefusedBeforeALaunch) {
  GreedySync::hidden = false;
  row_pair<GreedySync> pair(in_mode(launch_mode::pdl));
  EXPECT_THAT(message_of<invalid_argument>([&] { pair.depend(); }),
              HasSubstr("expects 5 posts on semaphore 0, the producer grid 2 x 4 x 1 makes 4"));
}

TEST(Waits, ForOnePostTooManyAreReportedAsADeadlock) {
  for (const launch_mode mode : {launch_mode::pdl, launch_mode::streams}) {
    GreedySync::hidden = true;
    row_pair<GreedySync> pair(in_mode(mode));
    pair.depend();
    GreedySync::hidden = false;
    EXPECT_THAT(message_of<deadlock>([&] { pair.run(every_tile, nothing); }),
                AllOf(HasSubstr("stage 'second', tile ("), HasSubstr("operand 0 on semaphore "),
                      HasSubstr("saw 4 posts and wanted 5")));
  }
}

TEST(Waits, ForATileThatIsNeverPostedAreReportedAsADeadlock) {
  row_pair<TileSync> pair(in_mode(launch_mode::pdl));
  pair.depend();
  EXPECT_THAT(
      message_of<deadlock>([&] {
        pair.run([](tile_coord tile) { return tile != tile_coord{1, 1, 0}; }, nothing); // tile 5
      }),
      AllOf(HasSubstr("stage 'second', tile (1, "),
            HasSubstr("on semaphore 5 saw 0 posts and wanted 1")));
}

TEST(Waits, EndWhenAConsumerThrows) {
  row_pair<TileSync> pair({.mode = launch_mode::pdl, .slots = 3});
  pair.depend();
  const auto trap = [](tile_coord tile) {
    if (tile.row == 1) throw std::runtime_error("trap");
  };
  EXPECT_EQ(message_of<std::runtime_error>([&] { pair.run(every_tile, trap); }), "trap");
}

TEST(Waits, ExpireWhenNothingIsPostedForTheLimit) {
  row_pair<TileSync> pair({.mode = launch_mode::pdl, .spin_limit_ns = 2'000'000'000});
  pair.depend();
  EXPECT_THAT(message_of<wait_timeout>([&] { pair.run(every_tile, nothing, 10'000'000'000); }),
              AllOf(HasSubstr("stage 'second', tile ("), HasSubstr("saw 0 posts and wanted 1"),
                    HasSubstr("nothing was posted for 2000 ms")));
}

TEST(Waits, DoNotExpireWhileTheProducerIsSlowButAlive) {
  row_pair<RowSync> pair({.mode = launch_mode::pdl, .slots = 2, .spin_limit_ns = 2'000'000'000});
  pair.depend(); // 8 tiles of 1.9 s on two slots; a row is complete after 3.8 s
  EXPECT_GT(pair.run(every_tile, nothing, 1'900'000'000).makespan_ns, 7'000'000'000u);
}

// --- 36: few SMs ---------------------------------------------------------------------------------

TEST(FewSms, RunEveryModeCorrectly) {
  for (const u32 sms : {1u, 7u, 14u})
    for (const launch_mode mode : modes)
      for (const u32 shared : {20u * 1024, 100u * 1024, 200u * 1024}) {
        sim::gpu slice = sim::find_gpu("H200");
        slice.sms = sms;
        pair_options options;
        options.block.shared_bytes = shared;
        pair_chain<TileSync, row_dependence> pair(rows_of<TileSync>({40, 30}, {4, 5}, 3, 4, 6),
                                                  slice,
                                                  {.mode = mode,
                                                   .blocks = sim::pick::random,
                                                   .stages = sim::pick::reversed,
                                                   .jitter = 0.5},
                                                  options);
        const sim::report report = pair.run(2);
        for (const sim::tile_record& tile : report.timeline) ASSERT_LT(tile.sm, sms);
      }
}

} // namespace
} // namespace cusync::test
