// SPDX-License-Identifier: MIT
// Field cases 28 and 30: dependence and policy together, on the sizes at which others lost half a
// tile, hung, or read partial sums.
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/dependence/tile_dependence.hpp>
#include <cusync/policy/batched_row_sync.hpp>
#include <cusync/policy/conv2d_tile_sync.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/strided_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace cusync {
namespace {

constexpr u32 heights[] = {1,   2,   63,  64,  65,  127,  128,  129,  191,  200,  255,
                           256, 257, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049};
constexpr u32 widths[] = {63, 64, 65, 127, 128, 129, 576}; // 576 leaves half a tile of 128

/// Calls `check(policy)` with each of the library's policies that has semaphores.
template <class Check> void for_each_policy(tile_extent producer, Check check) {
  check(GridSync{producer});
  check(TileSync{producer});
  check(RowSync{producer});
  check(Conv2DTileSync{{producer}});
  for (const u32 rows : {1u, 2u, 3u}) check(BatchedRowSync{producer, rows});
  for (const u32 stride : {1u, 2u, 3u}) check(StridedSync{producer, stride});
}

/// The posts of a run, counted by walking the producer's tiles and slices.
template <class Policy> std::vector<u32> posts_of(const Policy& policy, tile_extent producer) {
  std::vector<u32> posts(policy.semaphore_count(), 0);
  for (u32 row = 0; row < producer.rows; ++row)
    for (u32 col = 0; col < producer.cols; ++col)
      for (u32 slice = 0; slice < producer.slices; ++slice)
        ++posts.at(policy.semaphore_of({row, col, slice}));
  return posts;
}

template <class Policy> std::vector<u32> expected_by(const Policy& policy) {
  std::vector<u32> posts;
  for (u32 semaphore = 0; semaphore < policy.semaphore_count(); ++semaphore)
    posts.push_back(policy.posts_expected(semaphore));
  return posts;
}

TEST(FieldCase28, PartialTilesPostAsOftenAsTheyAreExpected) {
  for (const u32 height : heights)
    for (const u32 width : widths)
      for (const u32 tile_rows : {64u, 128u, 256u})
        for (const u32 slices : {1u, 3u}) {
          const tile_extent producer = grid_of({height, width}, {tile_rows, 128}, slices);
          for_each_policy(producer, [&](const auto& policy) {
            ASSERT_EQ(expected_by(policy), posts_of(policy, producer))
                << height << " x " << width << " in tiles of " << tile_rows << " rows";
          });
        }
}

/// The indices of the blocks that hold elements [begin, end), end cut off at `extent`: one by one.
std::set<u32> blocks_under(u32 begin, u32 end, u32 extent, u32 block) {
  std::set<u32> blocks;
  for (u32 element = begin; element < end && element < extent; ++element)
    blocks.insert(blocks.end(), element / block);
  return blocks;
}

template <class Policy> std::set<u32> guards_of(const Policy& policy, tile_range range) {
  const semaphore_range guards = policy.guards(range);
  std::set<u32> semaphores;
  for (u32 position = 0; position < guards.count(); ++position)
    semaphores.insert(guards.at(position));
  return semaphores;
}

/// Whether a wait for `range` covers every slice of the producer tiles in `rows` x `cols`.
template <class Policy>
bool covers(const Policy& policy, tile_range range, const std::set<u32>& rows,
            const std::set<u32>& cols) {
  const std::set<u32> guards = guards_of(policy, range);
  for (const u32 row : rows)
    for (const u32 col : cols)
      for (u32 slice = 0; slice < policy.producer.slices; ++slice)
        if (!guards.contains(policy.semaphore_of({row, col, slice}))) return false;
  return true;
}

/// Every element that a consumer tile reads lies in a tile that all policies make it wait for.
void expect_steps_covered(const row_dependence& gemm, tile_coord tile) {
  const u32 row = tile.row * gemm.consumer_rows;
  const std::set<u32> rows =
      blocks_under(row, row + gemm.consumer_rows, gemm.matrix.rows, gemm.producer_tile.rows);
  ASSERT_FALSE(rows.empty());
  const step_range steps = gemm.steps(tile);
  for (u32 step = steps.begin; step < steps.end; ++step) {
    const u32 col = step * gemm.step_cols;
    const std::set<u32> cols =
        blocks_under(col, col + gemm.step_cols, gemm.matrix.cols, gemm.producer_tile.cols);
    ASSERT_FALSE(cols.empty());
    for_each_policy(gemm.producer(), [&](const auto& policy) {
      ASSERT_TRUE(covers(policy, gemm.reads(tile, step), rows, cols)) << "step " << step;
      ASSERT_TRUE(covers(policy, gemm.reads(tile), rows, cols)) << "tile of step " << step;
    });
  }
}

/// Every consumer tile and slice of a GEMM that reads `matrix`.
void expect_gemm_covered(const row_dependence& gemm) {
  for (u32 row = 0; row < gemm.consumer().rows; ++row)
    for (u32 slice = 0; slice < gemm.consumer_slices; ++slice) {
      SCOPED_TRACE(std::to_string(gemm.matrix.rows) + " x " + std::to_string(gemm.matrix.cols) +
                   " in tiles of " + std::to_string(gemm.producer_tile.rows) + " rows, read in " +
                   std::to_string(gemm.consumer_rows) + ", slice " + std::to_string(slice));
      ASSERT_NO_FATAL_FAILURE(expect_steps_covered(gemm, {row, 0, slice}));
    }
}

TEST(FieldCase28, EveryReadOfAPartialTileIsCovered) {
  struct tile_heights {
    u32 producer, consumer;
  };
  for (const tile_heights tiles :
       {tile_heights{128, 128}, {64, 128}, {128, 64}, {256, 64}, {64, 256}, {96, 128}})
    for (const u32 height : heights)
      for (const u32 width : widths)
        ASSERT_NO_FATAL_FAILURE(expect_gemm_covered({.matrix = {height, width},
                                                     .producer_tile = {tiles.producer, 128},
                                                     .consumer_rows = tiles.consumer,
                                                     .step_cols = 64,
                                                     .consumer_cols = 1}));
}

TEST(FieldCase28, LastPartialTileOfAnElementwisePassIsCovered) {
  for (const u32 height : heights)
    for (const u32 width : widths) {
      const tile_dependence pass{{height, width}, {128, 128}, {64, 96}};
      const tile_extent consumer = pass.consumer();
      const tile_coord last{consumer.rows - 1, consumer.cols - 1, 0};
      for_each_policy(pass.producer(), [&](const auto& policy) {
        ASSERT_TRUE(covers(policy, pass.reads(last),
                           blocks_under(last.row * 64, height, height, 128),
                           blocks_under(last.col * 96, width, width, 128)))
            << height << " x " << width;
      });
    }
}

TEST(FieldCase30, AConsumerThatSplitsKVisitsEveryStepOnce) {
  for (const u32 width : {63u, 65u, 127u, 129u, 576u, 1000u})
    for (const u32 slices : {1u, 2u, 3u, 4u, 7u}) {
      const row_dependence gemm{.matrix = {200, width},
                                .producer_tile = {128, 128},
                                .consumer_rows = 64,
                                .step_cols = 64,
                                .consumer_cols = 2,
                                .consumer_slices = slices};
      std::vector<u32> visits(ceil_div(width, 64), 0);
      for (u32 slice = 0; slice < slices; ++slice) {
        const step_range steps = gemm.steps({0, 0, slice});
        for (u32 step = steps.begin; step < steps.end; ++step) ++visits.at(step);
      }
      EXPECT_EQ(visits, std::vector<u32>(visits.size(), 1)) << width << " by " << slices;
      ASSERT_NO_FATAL_FAILURE(expect_gemm_covered(gemm));
    }
}

TEST(FieldCase30, ATileIsCompleteWhenAllItsSlicesHavePosted) {
  for (const u32 slices : {1u, 2u, 3u, 4u, 7u}) {
    const row_dependence gemm{.matrix = {200, 576},
                              .producer_tile = {128, 128},
                              .consumer_rows = 64,
                              .step_cols = 64,
                              .consumer_cols = 2,
                              .producer_slices = slices};
    EXPECT_EQ(derive<TileSync>(gemm).posts_expected(0), slices);
    EXPECT_EQ(derive<RowSync>(gemm).posts_expected(0), 5 * slices);
    EXPECT_EQ(derive<GridSync>(gemm).posts_expected(0), 10 * slices);
    for_each_policy(gemm.producer(), [&](const auto& policy) {
      EXPECT_EQ(expected_by(policy), posts_of(policy, gemm.producer())) << slices << " slices";
    });
    ASSERT_NO_FATAL_FAILURE(expect_gemm_covered(gemm));
  }
}

} // namespace
} // namespace cusync
