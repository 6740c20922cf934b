// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/buffer_content.hpp> // buffer_content
#include <cusync/launch_plan.hpp>    // launch_plan
#include <cusync/ordering.hpp>       // ordering

#include <algorithm> // min
#include <limits>    // numeric_limits
#include <optional>  // optional
#include <string>    // string
#include <vector>    // vector

namespace cusync {

/// A write that nothing orders behind a read of what it destroys, or behind an earlier write.
struct overwrite {
  cusync::buffer of;
  const any_stage* writer = nullptr;
  tile_coord writing;
  const any_stage* producer = nullptr; ///< Of what is destroyed; null: from before the chain.
  tile_coord lost;
  const any_stage* reader = nullptr; ///< Null: the producer itself may be the later one.
  tile_coord reading;

  /// One sentence that names the two tiles, and the remedy.
  std::string text(const chain& in) const {
    const std::string where = "stage '" + writer->name() + "' tile " + to_string(writing) +
                              " writes buffer '" + in.buffers()[of.index] + "' ";
    const std::string what =
        "tile " + to_string(lost) +
        (producer == nullptr ? " from before the chain" : " of stage '" + producer->name() + "'");
    const any_stage& other = reader == nullptr ? *producer : *reader;
    return where +
           (reader == nullptr ? "where " + what + " may be written later, no wait orders the two"
                              : "while stage '" + reader->name() + "' tile " + to_string(reading) +
                                    " may still read " + what + ", no wait orders the two") +
           "; add a GridSync dependence of '" + writer->name() + "' on '" + other.name() +
           "', or write another buffer";
  }
};

namespace detail {

/// Looks for the overwrites of one plan and one style of waiting. Between runs nothing can go wrong:
/// the last stage of a run is complete, and with it all others, before the next run begins.
class overwrite_search {
public:
  overwrite_search(const chain& in, const launch_plan& plan, wait_style style)
      : chain_(in), plan_(plan), order_(plan, style) {}

  std::optional<overwrite> run() {
    for (u32 first = 0; first < plan_.stages.size(); ++first) {
      if (stage_at(first).writes().index == buffer::none) continue;
      std::optional<buffer_content> content;
      for (u32 later = first + 1; later < plan_.stages.size() && !found_; ++later) {
        if (stage_at(later).writes().index != stage_at(first).writes().index) continue;
        if (!content) content = written_by(first);
        compare(later, *content, first);
      }
    }
    for (const initial_read& read : chain_.initial_reads())
      for (u32 later = 0; later < plan_.stages.size() && !found_; ++later)
        if (stage_at(later).writes().index == read.of.index && read.reader->tiles() != 0)
          compare(later, from_before(read), nobody);
    return found_;
  }

private:
  static constexpr u32 nobody = std::numeric_limits<u32>::max();

  const any_stage& stage_at(u32 position) const { return *plan_.stages[position].stage; }

  buffer_content written_by(u32 producer) const {
    const any_stage& stage = stage_at(producer);
    buffer_content content(stage.grid(), stage.tile_elements());
    for (u32 k = 0; k < plan_.stages.size(); ++k)
      for (u32 input = 0; input < stage_at(k).declared_inputs().size(); ++input)
        if (stage_at(k).declared_inputs()[input].producer == &stage)
          content.add_reader(k, stage_at(k), stage_at(k).same_in_a_row(input),
                             [&](tile_coord tile, const auto& visit) {
                               for_each_wait(
                                   stage_at(k), input, tile, order_.style(),
                                   [&](tile_range range, semaphore_range) { visit(range); });
                             });
    content.finish();
    return content;
  }

  buffer_content from_before(const initial_read& read) const {
    buffer_content content(read.grid, read.tile);
    content.add_reader(order_.position_of(*read.reader), *read.reader, false,
                       [&](tile_coord tile, const auto& visit) { visit(read.reads(tile)); });
    content.finish();
    return content;
  }

  /// Every tile of the stage at `k` against what it writes over.
  void compare(u32 k, const buffer_content& content, u32 producer) {
    const any_stage& writer = stage_at(k);
    const bool alike = waits_same_in_a_row(plan_.stages[k]);
    const tile_extent grid = writer.grid();
    cleared_.assign(content.groups.size(), 0);
    turn_ = 0;
    for (u32 row = 0; row < grid.rows; ++row)
      for (u32 slice = 0; slice < grid.slices; ++slice)
        for (u32 col = 0; col < grid.cols && !found_; ++col) {
          const tile_coord tile{row, col, slice};
          if (col == 0 || !alike) look_back(k, tile, turn_ == 0);
          over(k, tile, content, producer);
        }
  }

  /// Tiles that wait for the same share one look.
  void look_back(u32 k, tile_coord tile, bool first) {
    std::swap(waits_, last_waits_);
    waits_.clear();
    const stage_plan& plan = plan_.stages[k];
    for (u32 input = 0; input < plan.waits.size(); ++input)
      if (plan.waits[input] != wait_kind::none)
        for_each_wait(*plan.stage, input, tile, order_.style(),
                      [&](tile_range, semaphore_range guards) { waits_.push_back(guards); });
    if (!first && waits_ == last_waits_) return;
    ++turn_;
    order_.look_back(k, tile);
  }

  /// Tiles of an axis of the content that a writer's tile overlaps.
  static axis_range under(u32 index, u32 tile, u32 content_tile, u32 extent) {
    const u64 begin = u64{index} * tile / content_tile;
    const u64 end = ((u64{index} + 1) * tile + content_tile - 1) / content_tile;
    return {static_cast<u32>(std::min<u64>(begin, extent)),
            static_cast<u32>(std::min<u64>(end, extent))};
  }

  void over(u32 k, tile_coord writing, const buffer_content& content, u32 producer) {
    const element_extent own = stage_at(k).tile_elements();
    const axis_range rows = under(writing.row, own.rows, content.tile.rows, content.grid.rows);
    const axis_range cols = under(writing.col, own.cols, content.tile.cols, content.grid.cols);
    for (u32 row = rows.begin; row < rows.end; ++row)
      for (u32 col = cols.begin; col < cols.end && !found_; ++col) {
        if (producer != nobody) behind_writer(k, writing, content, producer, {row, col, 0});
        content.for_each_group(row, col, [&](u32 group) {
          if (!found_) behind_readers(k, writing, content, producer, {row, col, 0}, group);
        });
      }
  }

  void behind_writer(u32 k, tile_coord writing, const buffer_content& content, u32 producer,
                     tile_coord lost) {
    for (lost.slice = 0; lost.slice < content.grid.slices && !found_; ++lost.slice)
      if (!order_.precedes(producer, index_of(lost, content.grid)))
        report(k, writing, producer, lost, nobody, 0);
  }

  void behind_readers(u32 k, tile_coord writing, const buffer_content& content, u32 producer,
                      tile_coord lost, u32 group) {
    const reader_group& readers = content.groups[group];
    if (cleared_[group] == turn_ || order_.stage_precedes(readers.position)) return;
    const u32 itself = readers.position == k ? index_of(writing, stage_at(k).grid()) : nobody;
    for (u32 i = readers.first; i < readers.last; ++i) {
      const u32 reading = content.readers[i];
      if (reading == itself || order_.precedes(readers.position, reading)) continue;
      return report(k, writing, producer, lost, readers.position, reading);
    }
    if (itself == nobody) cleared_[group] = turn_;
  }

  void report(u32 k, tile_coord writing, u32 producer, tile_coord lost, u32 reader, u32 reading) {
    overwrite made;
    made.of = stage_at(k).writes();
    made.writer = &stage_at(k);
    made.writing = writing;
    made.lost = lost;
    if (producer != nobody) made.producer = &stage_at(producer);
    if (reader != nobody) {
      made.reader = &stage_at(reader);
      made.reading = tile_of(reading, stage_at(reader).grid());
    }
    found_ = made;
  }

  const chain& chain_;
  const launch_plan& plan_;
  ordering order_;
  std::vector<semaphore_range> waits_, last_waits_;
  std::vector<u32> cleared_; ///< By group: the look in which all its readers were found complete.
  u32 turn_ = 0;
  std::optional<overwrite> found_;
};

/// Some buffer is written that is written by another stage, or read from before the chain.
inline bool overwrites_something(const chain& in) {
  std::vector<u32> uses(in.buffers().size(), 0);
  for (const initial_read& read : in.initial_reads()) uses[read.of.index] = 1;
  for (const auto& stage : in.stages())
    if (stage->writes().index != buffer::none && ++uses[stage->writes().index] > 1) return true;
  return false;
}

} // namespace detail

/// The first overwrite of a plan that comes too early in some schedule; none where all are safe, for
/// kernels that wait before each step and for those that wait once a tile.
inline std::optional<overwrite> find_overwrite(const chain& in, const launch_plan& plan) {
  if (!detail::overwrites_something(in)) return {};
  for (const wait_style style : wait_styles)
    if (auto found = detail::overwrite_search(in, plan, style).run()) return found;
  return {};
}

/// Throws `invalid_argument` where `find_overwrite` finds one.
inline void require_no_overwrite(const chain& in, const launch_plan& plan) {
  if (const auto found = find_overwrite(in, plan))
    throw invalid_argument("mode " + std::string(name_of(plan.mode)) + ": " + found->text(in));
}

} // namespace cusync
