// SPDX-License-Identifier: MIT
#include <cusync/dependence/grid_dependence.hpp>
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/dependence/tile_dependence.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/overwrite.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>
#include <cusync/sim/cusync.hpp>

#include <gmock/gmock.h>

#include <string>

namespace cusync::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr operand<0> A;
using Source = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
using Middle =
    CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<TileSync, GridSync>>;
template <class Policy, class Reads>
using Last = CuStage<RowMajor, inputs<reads<0, Policy, Reads>>, outputs<>>;
constexpr row_dependence rows{{4, 3}, {1, 1}, 1, 1, 3};

/// first -> second -> third, where the third writes the first one's buffer again.
template <class Policy, class Reads>
std::string overwriting(const Reads& reads_of_third, launch_mode mode = launch_mode::pdl) {
  CuSync chain(find_gpu("H200"), {.mode = mode});
  const buffer x = chain.buffer("X");
  auto& first = chain.stage<Source>("first", rows.producer(), RowMajor{}, {.writes = x});
  auto& second = chain.stage<Middle>("second", rows.consumer(), RowMajor{});
  auto& third = chain.stage<Last<Policy, Reads>>("third", reads_of_third.consumer(), RowMajor{},
                                                 {.writes = x});
  chain.dependency<RowSync>(first, second, A, rows);
  chain.template dependency<Policy>(second, third, A, reads_of_third);
  try {
    chain.prepare();
  } catch (const invalid_argument& refusal) {
    return refusal.what();
  }
  return "accepted";
}

// A tile of `third` waits for its own tile of `second`; the others of that row read what it overwrites.
TEST(Overwrite, IsRefusedAtSetUpNamingTheTwoTiles) {
  const tile_dependence own_tile{{4, 3}, {1, 1}, {1, 1}};
  EXPECT_EQ(
      overwriting<TileSync>(own_tile),
      "mode pdl: stage 'third' tile (0, 0, 0) writes buffer 'X' while stage 'second' tile "
      "(0, 1, 0) may still read tile (0, 0, 0) of stage 'first', no wait orders the two; add a "
      "GridSync dependence of 'third' on 'second', or write another buffer");
  EXPECT_EQ(overwriting<TileSync>(own_tile, launch_mode::serial), "accepted");
}

TEST(Overwrite, IsAcceptedBehindAllReaders) {
  EXPECT_EQ(overwriting<TileSync>(rows), "accepted"); // each row waits for all that read it
  EXPECT_EQ(overwriting<GridSync>(tile_dependence{{4, 3}, {1, 1}, {1, 1}}), "accepted");
}

TEST(Overwrite, OfWhatWasThereBeforeTheChainIsRefused) {
  CuSync chain;
  const buffer x = chain.buffer("X");
  auto& first = chain.stage<Source>("first", rows.producer(), RowMajor{});
  auto& second = chain.stage<Last<RowSync, row_dependence>>("second", rows.consumer(), RowMajor{},
                                                            {.writes = x});
  chain.dependency<RowSync>(first, second, A, rows);
  chain.initial(x, first, {1, 1}, tile_dependence{{4, 3}, {1, 1}, {1, 1}});
  EXPECT_NO_THROW(chain.prepare()); // a row of `second` waits for the row that reads it

  CuSync other;
  const buffer y = other.buffer("Y");
  auto& reader = other.stage<Source>("reader", rows.producer(), RowMajor{});
  auto& writer = other.stage<Last<RowSync, row_dependence>>("writer", rows.consumer(), RowMajor{},
                                                            {.writes = y});
  other.dependency<RowSync>(reader, writer, A, rows);
  other.initial(y, reader, {4, 1}, grid_dependence{{1, 3, 1}, rows.producer()});
  try {
    other.prepare();
    FAIL();
  } catch (const invalid_argument& refusal) {
    EXPECT_THAT(refusal.what(), AllOf(HasSubstr("stage 'writer' tile (0, 0, 0)"),
                                      HasSubstr("stage 'reader' tile (1, 0, 0) may still read"),
                                      HasSubstr("from before the chain")));
  }
}

TEST(Overwrite, InPlaceIsAcceptedTileByTile) {
  using Head = CuStage<RowMajor, inputs<>, outputs<TileSync>>;
  const tile_dependence own_tile{{4, 3}, {1, 1}, {1, 1}};
  CuSync chain;
  const buffer x = chain.buffer("X");
  auto& first = chain.stage<Head>("first", own_tile.producer(), RowMajor{}, {.writes = x});
  auto& second = chain.stage<Last<TileSync, tile_dependence>>("second", own_tile.consumer(),
                                                              RowMajor{}, {.writes = x});
  chain.dependency<TileSync>(first, second, A, own_tile);
  EXPECT_NO_THROW(chain.prepare());
}

TEST(Overwrite, WantsABufferOfThisChain) {
  CuSync chain, other;
  other.buffer("X");
  EXPECT_THROW(chain.stage<Source>("a", rows.producer(), RowMajor{}, {.writes = {0}}),
               invalid_argument);
}

} // namespace
} // namespace cusync::sim
