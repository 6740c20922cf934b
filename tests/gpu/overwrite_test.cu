// SPDX-License-Identifier: MIT
// A chain that overwrites a buffer too early is refused before anything is launched.

#include "gpu_test.cuh"

#include <cusync/dependence/row_dependence.hpp>
#include <cusync/dependence/tile_dependence.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

#include <gmock/gmock.h>

#include <string>

namespace cusync::test {
namespace {

template <class Stage> __global__ void note_launch(u32* launched, Stage stage) {
  stage.start();
  if (threadIdx.x == 0) atomicAdd(launched, 1u);
  while (auto tile = stage.tile()) {
    stage.wait_all(A, *tile);
    stage.post(*tile);
  }
}

constexpr row_dependence rows{{4, 3}, {1, 1}, 1, 1, 3};

/// Three stages, of which the third writes the first one's buffer again, behind a row of the second or
/// behind one tile of it. What `prepare` says, or "accepted".
template <class Reads> std::string said_of(launch_mode mode, const Reads& third_reads) {
  using first_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
  using second_stage =
      CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<TileSync>>;
  using third_stage = CuStage<RowMajor, inputs<reads<0, TileSync, Reads>>, outputs<>>;
  CuSync chain(in_mode(mode));
  const buffer x = chain.buffer("X");
  auto& first = chain.stage<first_stage>("first", rows.producer(), RowMajor{}, {.writes = x});
  auto& second = chain.stage<second_stage>("second", rows.consumer(), RowMajor{});
  auto& third =
      chain.stage<third_stage>("third", third_reads.consumer(), RowMajor{}, {.writes = x});
  chain.dependency<RowSync>(first, second, A, rows);
  chain.dependency<TileSync>(second, third, A, third_reads);
  const auto run_first = chain.kernel(first, note_launch<gpu_ref<first_stage>>, 32);
  const auto run_second = chain.kernel(second, note_launch<gpu_ref<second_stage>>, 32);
  const auto run_third = chain.kernel(third, note_launch<gpu_ref<third_stage>>, 32);
  words launched(1);
  stream user;
  launched.set(0, user);
  std::string said = "accepted";
  try {
    chain.launch(user, run_first(launched.data()), run_second(launched.data()),
                 run_third(launched.data()));
    chain.synchronize(user);
  } catch (const invalid_argument& refusal) {
    said = refusal.what();
  }
  EXPECT_EQ(launched.read()[0], said == "accepted" ? 36u : 0u);
  return said;
}

TEST(Overwrite, TooEarlyIsRefusedBeforeTheLaunch) {
  const tile_dependence own_tile{{4, 3}, {1, 1}, {1, 1}};
  for (const launch_mode mode : {launch_mode::pdl, launch_mode::streams})
    EXPECT_THAT(said_of(mode, own_tile),
                testing::AllOf(testing::HasSubstr("stage 'third' tile (0, 0, 0) writes buffer 'X'"),
                               testing::HasSubstr("stage 'second' tile (0, 1, 0) may still read")));
  EXPECT_EQ(said_of(launch_mode::serial, own_tile), "accepted");
  EXPECT_EQ(said_of(launch_mode::pdl, rows), "accepted");
}

} // namespace
} // namespace cusync::test
