// SPDX-License-Identifier: MIT
#include <cusync/kernels/gemm_host.hpp>
#include <cusync/kernels/gemm_reference.hpp>

#include "refusal_of.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace cusync {
namespace {

using testing::HasSubstr;

const half nan_half(std::numeric_limits<float>::quiet_NaN());

std::vector<half> random_halves(std::size_t count, u32 seed) {
  std::vector<half> values(count);
  u32 state = seed;
  for (half& value : values) {
    state = state * 1664525 + 1013904223;
    value = half(static_cast<float>(state >> 8) * 0x1p-23f - 1.0f);
  }
  return values;
}

/// Host matrices of one product; C is poisoned.
struct problem {
  problem(u32 m, u32 n, u32 k, activation then = activation::none)
      : a(random_halves(std::size_t{m} * k, 1)), b(random_halves(std::size_t{k} * n, 2)),
        c(std::size_t{m} * n, nan_half), args{a.data(), b.data(), c.data(), m, n, k, then} {}

  std::vector<half> a, b, c;
  gemm_arguments args;
};

void expect_right(const problem& done) {
  const gemm_reference expected(done.args);
  for (u32 row = 0; row < done.args.m; ++row)
    for (u32 col = 0; col < done.args.n; ++col)
      ASSERT_TRUE(expected.accepts(row, col, done.c[std::size_t{row} * done.args.n + col]))
          << "(" << row << ", " << col << ") is "
          << static_cast<float>(done.c[std::size_t{row} * done.args.n + col]) << ", not "
          << expected.value(row, col);
}

/// A block that takes all tiles of the grid in turn; the test looks at what it asks for.
struct stub_stage {
  tile_extent grid;
  std::function<void(int operand, tile_coord, u32 step)> on_wait = [](int, tile_coord, u32) {};
  std::function<void(tile_coord)> on_post = [](tile_coord) {};
  u32 taken = 0;

  void start() {}
  claimed_tile tile() {
    if (taken == grid.count()) return {};
    const u32 index = taken++;
    return {{index / grid.cols, index % grid.cols, 0}, true};
  }
  template <int Operand> u32 wait_ahead(operand<Operand>, tile_coord tile, u32 step) {
    on_wait(Operand, tile, step);
    return step + 1;
  }
  void post(tile_coord tile) { on_post(tile); }
};

stub_stage stage_for(const problem& work, gemm_tile tile) {
  return {gemm_grid(work.args.m, work.args.n, tile)};
}

TEST(GemmHost, MatchesTheReferenceForPartialTiles) {
  const gemm_tile tile{16, 32, 16};
  for (u32 m : {1u, 15u, 16u, 17u, 33u})
    for (u32 n : {8u, 32u, 40u})
      for (u32 k : {8u, 16u, 24u, 64u}) {
        problem work(m, n, k);
        gemm_host({work.args, tile}, stage_for(work, tile));
        expect_right(work);
      }
}

TEST(GemmHost, MatchesTheReferenceInOneTileOfALargerShape) {
  problem work(130, 264, 200, activation::gelu);
  gemm_host({work.args, {}}, stage_for(work, {}));
  expect_right(work);
}

TEST(GemmHost, GivesZerosForAnEmptySum) {
  problem work(5, 8, 0);
  gemm_host({work.args, {}}, stage_for(work, {}));
  for (half value : work.c) EXPECT_EQ(value.bits, 0);
}

TEST(GemmHost, TouchesNothingWithoutRows) {
  problem work(0, 8, 16);
  gemm_host({work.args, {}}, stage_for(work, {}));
}

TEST(GemmHost, ReadsAStepOfAOnlyBehindItsWait) {
  problem work(20, 40, 56);
  const gemm_tile tile{16, 32, 16};
  const std::vector<half> produced = work.a;
  work.a.assign(work.a.size(), nan_half);
  stub_stage stage = stage_for(work, tile);
  stage.on_wait = [&](int operand, tile_coord, u32 step) {
    if (operand != 0) return;
    for (u32 row = 0; row < work.args.m; ++row)
      for (u32 k = step * tile.k; k < std::min(work.args.k, (step + 1) * tile.k); ++k)
        work.a[row * work.args.k + k] = produced[row * work.args.k + k];
  };
  gemm_host({work.args, tile}, stage);
  expect_right(work);
}

TEST(GemmHost, PostsATileBehindItsLastStore) {
  problem work(20, 40, 16);
  const gemm_tile tile{16, 32, 16};
  stub_stage stage = stage_for(work, tile);
  u32 posts = 0;
  stage.on_post = [&](tile_coord at) {
    ++posts;
    for (u32 row = at.row * 16; row < std::min(20u, at.row * 16 + 16); ++row)
      for (u32 col = at.col * 32; col < std::min(40u, at.col * 32 + 32); ++col)
        ASSERT_NE(work.c[row * 40 + col].bits, nan_half.bits);
  };
  gemm_host({work.args, tile}, stage);
  EXPECT_EQ(posts, 4u);
}

TEST(GemmReference, IsTheSumOfTheProducts) {
  problem work(3, 520, 40); // columns beyond one block
  const gemm_reference all(work.args);
  const gemm_reference last(work.args, {2});
  for (u32 col = 0; col < work.args.n; ++col) {
    double sum = 0;
    for (u32 k = 0; k < work.args.k; ++k)
      sum += double{static_cast<float>(work.a[2 * 40 + k])} *
             static_cast<float>(work.b[k * 520 + col]);
    ASSERT_EQ(all.value(2, col), sum);
    ASSERT_EQ(last.value(0, col), sum);
  }
}

TEST(GemmReference, RejectsWhatAWrongKernelGives) {
  problem work(1, 8, 1024);
  const gemm_reference expected(work.args);
  const half right(static_cast<float>(expected.value(0, 3)));
  EXPECT_TRUE(expected.accepts(0, 3, right));
  EXPECT_FALSE(expected.accepts(0, 3, nan_half));
  EXPECT_FALSE(expected.accepts(0, 3, half(std::numeric_limits<float>::infinity())));
  problem shorter = work; // a k-tile is missing
  shorter.args.k = 1024 - 32;
  std::vector<half> a(work.a.begin(), work.a.begin() + shorter.args.k);
  shorter.args.a = a.data();
  const gemm_reference missing(shorter.args);
  u32 rejected = 0;
  for (u32 col = 0; col < 8; ++col)
    rejected += !expected.accepts(0, col, half(static_cast<float>(missing.value(0, col))));
  EXPECT_GE(rejected, 7u);
}

TEST(Gelu, IsTheTanhForm) {
  for (int eighths = -64; eighths <= 64; ++eighths) {
    const double x = eighths / 8.0;
    const double tanh_form =
        x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    EXPECT_NEAR(gelu(x), tanh_form, 1e-12);
    EXPECT_NEAR(gelu(x), x / 2 * (1 + std::erf(x / std::sqrt(2.0))), 5e-4);
    EXPECT_NEAR(gelu(static_cast<float>(x)), tanh_form, 1e-6 * (1 + std::abs(x)));
  }
  EXPECT_EQ(gelu(0.0f), 0.0f);
  EXPECT_EQ(gelu(-1000.0f), 0.0f); // the exponential overflows
  EXPECT_EQ(gelu(1000.0f), 1000.0f);
}

TEST(RequireValid, AcceptsWhatTheKernelCanLoad) {
  gemm_arguments args{.m = 1, .n = 8, .k = 8};
  EXPECT_NO_THROW(require_valid(args, {}));
  args = {};
  EXPECT_NO_THROW(require_valid(args, {}));    // no elements at all
  args = {.m = 175000, .n = 12288, .k = 6144}; // C's elements pass 2^31
  EXPECT_NO_THROW(require_valid(args, {}));
}

TEST(RequireValid, NamesTheExtentAndTheRemedy) {
  const auto refusal = [](gemm_arguments args) {
    return refusal_of([&] { require_valid(args, {}); });
  };
  EXPECT_EQ(refusal({.m = 1, .n = 100, .k = 8}),
            "gemm: N is 100; it must be a multiple of 8 (16-byte accesses), pad with zeros to 104");
  EXPECT_EQ(
      refusal({.m = 1, .n = 8, .k = 4095}),
      "gemm: K is 4095; it must be a multiple of 8 (16-byte accesses), pad with zeros to 4096");
}

TEST(RequireValid, NamesTheMisalignedPointer) {
  alignas(16) half memory[16];
  gemm_arguments args{memory, memory, memory, 1, 8, 8};
  EXPECT_NO_THROW(require_valid(args, {}));
  args.b = memory + 3;
  EXPECT_EQ(refusal_of([&] { require_valid(args, {}); }),
            "gemm: B lies 6 bytes behind a 16-byte boundary; move it there (cudaMalloc aligns)");
}

TEST(RequireValid, RefusesAGridThatCannotBeCounted) {
  const gemm_arguments args{.m = 0xffffffff, .n = 0xfffffff8, .k = 8};
  EXPECT_THAT(refusal_of([&] { require_valid(args, {}); }),
              HasSubstr("gemm: grid 33554432 x 33554432"));
}

} // namespace
} // namespace cusync
