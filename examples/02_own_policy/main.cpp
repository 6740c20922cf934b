// SPDX-License-Identifier: MIT
// A policy of one's own on the virtual GPU, under schedules that try to break it; and two that are
// wrong, which are refused.

#include "half_row_sync.hpp"

#include <cusync/dependence/row_dependence.hpp> // row_dependence
#include <cusync/order/row_major.hpp>           // RowMajor
#include <cusync/sim/checked_view.hpp>          // checked_input, checked_output
#include <cusync/sim/cusync.hpp>                // sim::CuSync

#include <cstdio>
#include <string>
#include <vector>

using namespace cusync;

/// Counts as many posts for the right half as for the left: too few of an odd number of columns.
struct ForgetsOddColumn : HalfRowSync {
  u32 posts_expected(u32) const { return producer.cols / 2 * producer.slices; }
  friend bool operator==(ForgetsOddColumn, ForgetsOddColumn) = default;
};

/// Waits for the half in which the range begins only.
struct ForgetsRightHalf : HalfRowSync {
  semaphore_range guards(tile_range range) const {
    const semaphore_range all = HalfRowSync::guards(range);
    return {all.begin, all.outer, 2, all.inner == 0 ? 0u : 1u, 1};
  }
  friend bool operator==(ForgetsRightHalf, ForgetsRightHalf) = default;
};

// Tiles of one element; the consumer reads a row, three elements a step.
constexpr operand<0> A;
constexpr element_extent a_extent{20, 9};
constexpr row_dependence reads_a{a_extent, {1, 1}, 1, 3, 2};

constexpr auto produce = [](int* a, auto stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    const tile_coord at = *tile;
    sim::checked_output<int> out(at, a, a_extent, reads_a.producer_tile);
    out(at.row, at.col) = static_cast<int>(at.row * 100 + at.col);
    stage.post(at);
  }
};

constexpr auto sum_row = [](const int* a, int* sums, auto stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    const u32 row = (*tile).row;
    // Throws where the dependence does not declare a read, or nothing has been waited for.
    const sim::checked_input in(stage, A, *tile, a, a_extent, reads_a.producer_tile);
    int sum = 0;
    for (u32 step = 0; step < 3; ++step) {
      stage.wait(A, *tile, step);
      for (u32 col = step * 3; col < step * 3 + 3; ++col) sum += in(row, col);
    }
    sums[row * 2 + (*tile).col] = sum;
  }
};

/// A run in each of many schedules; the number of sums that are wrong. Throws what a chain refuses.
template <class Policy> u32 wrong_sums() {
  using First = CuStage<RowMajor, inputs<>, outputs<Policy>>;
  using Second = CuStage<RowMajor, inputs<reads<0, Policy, row_dependence>>, outputs<>>;
  u32 wrong = 0;
  for (u32 seed = 0; seed < 64; ++seed) {
    sim::schedule how{.seed = seed, .slots = seed % 8 + 1, .jitter = 0.9};
    how.blocks = how.stages = how.ties = sim::pick::random;
    sim::CuSync chain(sim::find_gpu("H200"), how);
    auto& first = chain.stage<First>("produce", reads_a.producer(), RowMajor{});
    auto& second = chain.stage<Second>("sum", reads_a.consumer(), RowMajor{});
    chain.dependency<Policy>(first, second, A, reads_a);
    std::vector<int> a(a_extent.rows * a_extent.cols, -1), sums(a_extent.rows * 2, -1);
    const auto run_first = chain.kernel(first, produce);
    const auto run_second = chain.kernel(second, sum_row);
    chain.launch(run_first(a.data()), run_second(a.data(), sums.data()));
    for (u32 i = 0; i < sums.size(); ++i) wrong += sums[i] != static_cast<int>(i / 2 * 900 + 36);
  }
  return wrong;
}

template <class Policy> bool refused(const std::string& reason) try {
  wrong_sums<Policy>();
  return false;
} catch (const invalid_argument& refusal) {
  std::printf("refused: %s\n", refusal.what());
  return std::string(refusal.what()).find(reason) != std::string::npos;
}

int main() {
  const u32 wrong = wrong_sums<HalfRowSync>();
  std::printf("HalfRowSync: %u sums are wrong in 64 schedules\n", wrong);
  const bool both = refused<ForgetsOddColumn>("expects 4 posts on semaphore 1") &&
                    refused<ForgetsRightHalf>("does not cover its dependence");
  return wrong == 0 && both ? 0 : 1;
}
