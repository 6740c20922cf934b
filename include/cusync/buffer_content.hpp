// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/chain.hpp>      // initial_read
#include <cusync/wait_style.hpp> // for_each_wait, wait_style

#include <algorithm> // min
#include <vector>    // vector

namespace cusync {

/// Reader tiles of one stage that read the same, in a row: they are looked at together.
struct reader_group {
  u32 position;    ///< Of their stage in the plan.
  u32 first, last; ///< In `buffer_content::readers`.
};

/// What a buffer holds at some time of a run, tile by tile, and who reads it: written by one stage, or
/// from before the chain.
class buffer_content {
public:
  tile_extent grid;
  element_extent tile;      ///< Elements of one of the tiles.
  std::vector<u32> readers; ///< Indices of tiles (`index_of`), group by group.
  std::vector<reader_group> groups;

  buffer_content(tile_extent of, element_extent elements) : grid(of), tile(elements) {}

  /// `ranges_of(tile, visit)` calls `visit(range)` for what a reader's tile reads.
  template <class Ranges>
  void add_reader(u32 position, const any_stage& stage, bool same_in_a_row,
                  const Ranges& ranges_of) {
    std::vector<tile_range> now, before;
    const tile_extent extent = stage.grid();
    for (u32 row = 0; row < extent.rows; ++row)
      for (u32 slice = 0; slice < extent.slices; ++slice)
        for (u32 col = 0; col < extent.cols; ++col) {
          if (col == 0 || !same_in_a_row) {
            now.clear();
            ranges_of(tile_coord{row, col, slice}, [&](tile_range range) { add(now, range); });
          }
          if (groups.empty() || groups.back().position != position || now != before)
            open(position, now);
          before = now;
          readers.push_back(index_of({row, col, slice}, extent));
          ++groups.back().last;
        }
  }

  /// After the last reader.
  void finish() {
    begin_.assign(u64{grid.rows} * grid.cols + 1, 0);
    for_each_entry([&](u32 at, u32) { ++begin_[at + 1]; });
    for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    entries_.resize(begin_.back());
    std::vector<u32> next(begin_.begin(), begin_.end() - 1);
    for_each_entry([&](u32 at, u32 group) { entries_[next[at]++] = group; });
    ranges_ = {};
  }

  /// Calls `visit(group)` for each group that reads the tile.
  template <class Visit> void for_each_group(u32 row, u32 col, const Visit& visit) const {
    const u32 at = row * grid.cols + col;
    for (u32 i = begin_[at]; i < begin_[at + 1]; ++i) visit(entries_[i]);
  }

private:
  struct group_range {
    u32 group;
    tile_range range;
  };

  static void add(std::vector<tile_range>& ranges, tile_range range) {
    if (!range.empty() && (ranges.empty() || ranges.back() != range)) ranges.push_back(range);
  }

  void open(u32 position, const std::vector<tile_range>& ranges) {
    const u32 first = static_cast<u32>(readers.size());
    groups.push_back({position, first, first});
    for (const tile_range& range : ranges)
      ranges_.push_back({static_cast<u32>(groups.size() - 1), range});
  }

  template <class Visit> void for_each_entry(const Visit& visit) const {
    for (const group_range& each : ranges_)
      for (u32 row = each.range.row_begin; row < std::min(each.range.row_end, grid.rows); ++row)
        for (u64 col = each.range.col_begin; col < std::min(each.range.col_end, grid.cols);
             col += each.range.col_stride)
          visit(row * grid.cols + static_cast<u32>(col), each.group);
  }

  std::vector<group_range> ranges_;
  std::vector<u32> begin_, entries_; ///< The groups that read each tile.
};

} // namespace cusync
