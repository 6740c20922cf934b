// SPDX-License-Identifier: MIT
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>
#include <cusync/sim/cusync.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <ctime>

namespace cusync::sim {
namespace {

constexpr operand<0> A;
constexpr double promised = 5e6; // tiles a second

struct grid_shape {
  u32 cols;
  u32 waits = 4; ///< Steps of a tile of the second GEMM, each ahead of a wait.
  double jitter = 0;
};

/// Two GEMMs of `tiles` tiles together, 16 blocks an SM.
template <class Policy> class gemms {
public:
  gemms(launch_mode mode, u32 tiles, grid_shape shape)
      : tiles_(tiles / (2 * shape.cols) * (2 * shape.cols)),
        chain_(find_gpu("H200"), {.mode = mode, .jitter = shape.jitter}) {
    using first_type = CuStage<RowMajor, inputs<>, outputs<Policy>>;
    using second_type = CuStage<RowMajor, inputs<reads<0, Policy, row_dependence>>, outputs<>>;
    const u32 cols = shape.cols;
    const row_dependence reads{.matrix = {tiles / (2 * cols), cols},
                               .producer_tile = {1, 1},
                               .consumer_rows = 1,
                               .step_cols = cols / shape.waits,
                               .consumer_cols = cols};
    auto& first = chain_.stage<first_type>("first", reads.producer(), RowMajor{});
    auto& second = chain_.stage<second_type>("second", reads.consumer(), RowMajor{});
    chain_.dependency<Policy>(first, second, A, reads);
    chain_.kernel(first, [](auto) {}, {}, {.ns = 9000});
    chain_.kernel(second, [](auto) {}, {}, {.ns = 7000});
    chain_.prepare();
  }

  /// Seconds of this processor alone, the best of a few: what else runs here does not count.
  double seconds() {
    double best = 0;
    for (int i = 0; i < (tiles_ > 2'000'000 ? 2 : 5); ++i) {
      const std::clock_t begin = std::clock();
      EXPECT_GT(chain_.predict().makespan_ns, 0u);
      const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      if (i == 0 || took < best) best = took;
    }
    return best;
  }
  u32 tiles() const { return tiles_; }

private:
  u32 tiles_;
  CuSync chain_;
};

template <class Policy>
void expect_speed(launch_mode mode, grid_shape shape, const char* name, double least = promised) {
  double a_small_tile = 0;
  for (const u32 tiles : {100'000u, 1'000'000u, 10'000'000u}) {
    gemms<Policy> chain(mode, tiles, shape);
    const double a_tile = chain.seconds() / chain.tiles();
    std::printf("%-12s %4u columns %4u waits %9u tiles: %5.1f million a second\n", name, shape.cols,
                shape.waits, chain.tiles(), 1e-6 / a_tile);
    EXPECT_GE(1 / a_tile, least) << name << ", " << tiles << " tiles";
    if (tiles == 100'000) a_small_tile = a_tile;
    const double allowed = std::log(tiles) / std::log(100'000); // n log n
    EXPECT_LE(a_tile, 1.5 * allowed * a_small_tile) << name << ", " << tiles << " tiles";
  }
}

TEST(TimingSpeed, InStreamOrder) {
  expect_speed<RowSync>(launch_mode::serial, {100}, "stream order");
}
TEST(TimingSpeed, WithRowSync) {
  expect_speed<RowSync>(launch_mode::pdl, {8}, "RowSync");
  expect_speed<RowSync>(launch_mode::streams, {1000}, "RowSync");
}
TEST(TimingSpeed, WithTileSync) {
  expect_speed<TileSync>(launch_mode::pdl, {8}, "TileSync");
  expect_speed<TileSync>(launch_mode::pdl, {1000}, "TileSync");
}
TEST(TimingSpeed, WithAHundredWaitsATile) {
  expect_speed<TileSync>(launch_mode::pdl, {100, 100}, "TileSync");
}
/// Events that come in no order need a heap: above the promise on a core of its own, with less to spare.
TEST(TimingSpeed, WithJitter) {
  expect_speed<RowSync>(launch_mode::pdl, {100, 4, 0.05}, "jitter", promised / 2);
}

} // namespace
} // namespace cusync::sim
