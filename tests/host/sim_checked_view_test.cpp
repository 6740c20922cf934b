// SPDX-License-Identifier: MIT
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>
#include <cusync/sim/checked_view.hpp>
#include <cusync/sim/cusync.hpp>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace cusync::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr operand<0> A;
constexpr operand<7> weights;
constexpr element_extent matrix{4, 6};
constexpr element_extent tile_shape{2, 3};
constexpr row_dependence rows{.matrix = matrix,
                              .producer_tile = tile_shape,
                              .consumer_rows = 2,
                              .step_cols = 3,
                              .consumer_cols = 1};

/// What a consumer is told when it reads as `read(view, stage, tile)` does; "fine" where nothing.
template <class Policy, class Read> std::string verdict(launch_mode mode, Read read) {
  using Producer = CuStage<RowMajor, inputs<>, outputs<Policy>>;
  using Consumer = CuStage<RowMajor, inputs<reads<0, Policy, row_dependence>>, outputs<>>;
  CuSync chain(find_gpu("H200"), {.mode = mode});
  auto& first = chain.stage<Producer>("first", rows.producer(), RowMajor{});
  auto& second = chain.stage<Consumer>("second", rows.consumer(), RowMajor{});
  chain.dependency<Policy>(first, second, A, rows);
  std::vector<float> data(24, 0);
  const auto write = chain.kernel(first, [&](auto stage) {
    stage.start();
    while (auto tile = stage.tile()) {
      checked_output<float> out(*tile, data.data(), matrix, tile_shape);
      for (u32 row = 0; row < 2; ++row)
        for (u32 col = 0; col < 3; ++col) out((*tile).row * 2 + row, (*tile).col * 3 + col) = 1;
      stage.post(*tile);
    }
  });
  const auto eat = chain.kernel(second, [&](auto stage) {
    stage.start();
    while (auto tile = stage.tile()) read(data.data(), stage, *tile);
  });
  try {
    chain.launch(write(), eat());
  } catch (const kernel_fault& fault) {
    return fault.what();
  }
  return "fine";
}

template <class Stage, int Operand>
auto view(const float* data, const Stage& stage, operand<Operand> which, tile_coord tile) {
  return checked_input<float, Stage, Operand>(stage, which, tile, data, matrix, tile_shape);
}

constexpr auto reads_with_a_wait = [](const float* data, auto& stage, tile_coord tile) {
  const auto a = view(data, stage, A, tile);
  for (u32 col = 0; col < 6; ++col) {
    if (col % 3 == 0) stage.wait(A, tile, col / 3);
    EXPECT_EQ(a(tile.row * 2, col), 1.f);
  }
};
constexpr auto reads_without_a_wait = [](const float* data, auto& stage, tile_coord tile) {
  view(data, stage, A, tile)(tile.row * 2, 0);
};

TEST(CheckedInput, GivesWhatWasWaitedFor) {
  for (const launch_mode mode : {launch_mode::serial, launch_mode::pdl, launch_mode::streams}) {
    EXPECT_EQ((verdict<TileSync>(mode, reads_with_a_wait)), "fine");
    EXPECT_EQ((verdict<RowSync>(mode, reads_with_a_wait)), "fine");
    EXPECT_EQ((verdict<GridSync>(mode, reads_with_a_wait)), "fine");
  }
}

TEST(CheckedInput, FaultsAReadWithoutAWait) {
  EXPECT_THAT((verdict<TileSync>(launch_mode::pdl, reads_without_a_wait)),
              AllOf(HasSubstr("stage 'second', tile ("), HasSubstr("reads producer tile ("),
                    HasSubstr("through operand 0 without having waited for it")));
  EXPECT_THAT((verdict<GridSync>(launch_mode::pdl, reads_without_a_wait)),
              HasSubstr("without having waited for the stage ahead"));
  EXPECT_EQ((verdict<TileSync>(launch_mode::serial, reads_without_a_wait)), "fine"); // launch order
}

TEST(CheckedInput, FaultsAReadOneStepAhead) {
  const auto ahead = [](const float* data, auto& stage, tile_coord tile) {
    stage.wait(A, tile, 0);
    view(data, stage, A, tile)(tile.row * 2, 3);
  };
  EXPECT_THAT((verdict<TileSync>(launch_mode::pdl, ahead)),
              HasSubstr("without having waited for it"));
  EXPECT_EQ((verdict<RowSync>(launch_mode::pdl, ahead)), "fine"); // the row's one semaphore
}

// What a policy happens to wait for is not what the dependence declares.
TEST(CheckedInput, FaultsAReadThatIsNotDeclared) {
  const auto neighbour = [](const float* data, auto& stage, tile_coord tile) {
    stage.wait_all(A, tile);
    view(data, stage, A, tile)((tile.row * 2 + 2) % 4, 0);
  };
  for (const launch_mode mode : {launch_mode::serial, launch_mode::pdl})
    EXPECT_THAT((verdict<GridSync>(mode, neighbour)),
                HasSubstr("which its dependence does not declare"));
}

TEST(CheckedInput, LeavesOperandsWithoutADependenceAlone) {
  const auto external = [](const float* data, auto& stage, tile_coord tile) {
    view(data, stage, weights, tile)(3, 5);
  };
  EXPECT_EQ((verdict<TileSync>(launch_mode::pdl, external)), "fine");
}

TEST(CheckedInput, FaultsAReadOutsideOfTheMatrix) {
  const auto outside = [](const float* data, auto& stage, tile_coord tile) {
    view(data, stage, weights, tile)(4, 0);
  };
  EXPECT_THAT((verdict<TileSync>(launch_mode::pdl, outside)),
              HasSubstr("reads element (4, 0) of a 4 x 6 matrix"));
}

TEST(CheckedOutput, FaultsAWriteOutsideOfTheTile) {
  const auto writes = [](u32 row, u32 col) {
    return [=](float*, auto&, tile_coord) {
      float scratch[24] = {};
      checked_output<float> out({0, 1, 0}, scratch, matrix, tile_shape);
      out(row, col) = 1;
    };
  };
  const auto result = [&](u32 row, u32 col) {
    return verdict<TileSync>(launch_mode::serial, writes(row, col));
  };
  EXPECT_EQ(result(1, 3), "fine");
  EXPECT_THAT(result(2, 3), HasSubstr("writes element (2, 3), which is not in that tile"));
  EXPECT_THAT(result(1, 2), HasSubstr("writes element (1, 2), which is not in that tile"));
  EXPECT_THAT(result(1, 6), HasSubstr("writes element (1, 6) of a 4 x 6 matrix"));
}

// A tile's stores come at its end, so that an early reader finds what was there before.
TEST(CheckedOutput, StoresWhenTheTilesTimeHasPassed) {
  using Stage = CuStage<RowMajor, inputs<>, outputs<>>;
  CuSync chain(find_gpu("H200"), {.mode = launch_mode::serial});
  auto& slow = chain.stage<Stage>("slow", {1, 1, 1}, RowMajor{});
  auto& fast = chain.stage<Stage>("fast", {1, 1, 1}, RowMajor{});
  float word = 0;
  const auto kernel = chain.kernel(slow,
                                   [&](auto stage) {
                                     stage.start();
                                     while (auto tile = stage.tile()) {
                                       checked_output<float> out(*tile, &word, {1, 1}, {1, 1});
                                       out(0, 0) = 1;
                                     }
                                   },
                                   {}, {.ns = 5000});
  const auto next = chain.kernel(fast, [&](auto stage) {
    stage.start();
    while (stage.tile()) EXPECT_EQ(word, 1.f);
  });
  const report found = chain.launch(kernel(), next());
  EXPECT_EQ(found.timeline.at(0).work_ns, 5000u);
}

} // namespace
} // namespace cusync::sim
