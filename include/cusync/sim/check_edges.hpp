// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/ordering.hpp>         // ordering, post_list
#include <cusync/sim/check_report.hpp> // property_result, over_wait

#include <algorithm> // max, min
#include <optional>  // optional
#include <string>    // string, to_string
#include <vector>    // vector

namespace cusync::sim::detail {

/// What one edge of a launch proves: that reads stand behind waits for them, that these end and not too
/// early, and how much they wait for beyond what is read. Walks what is read, once for neighbours that
/// read the same.
class edge_check {
public:
  edge_check(const launch_plan& plan, u32 position, u32 input)
      : plan_(plan), position_(position), input_(input), consumer_(*plan.stages[position].stage),
        edge_(consumer_.declared_inputs()[input]), producer_(*edge_.producer),
        kind_(plan.stages[position].waits[input]) {}

  std::optional<counterexample> uncovered; ///< A read that no wait covers.
  std::optional<counterexample> early;     ///< A wait that ends too early.
  std::optional<counterexample> endless;   ///< A wait that never ends.
  over_wait cost;

  void run() {
    cost.producer = producer_.name();
    cost.consumer = consumer_.name();
    cost.operand = edge_.operand;
    cost.waits = kind_ == wait_kind::semaphores ? "semaphores"
                 : kind_ == wait_kind::grid     ? "grid"
                                                : "launch order";
    if (kind_ == wait_kind::semaphores) {
      posts_.emplace(producer_, edge_.output);
      const u32 semaphores = producer_.declared_outputs()[edge_.output].semaphores;
      stamps_.assign(semaphores, 0);
      waiter_.assign(semaphores, nobody);
    }
    for_each_row_of_tiles([&](tile_coord tile, u32 count) {
      if (kind_ == wait_kind::semaphores)
        for (const wait_style style : wait_styles)
          for_each_wait(consumer_, input_, tile, style,
                        [&](tile_range range, semaphore_range by) { cover(tile, range, by); });
      else
        require_inside(tile, consumer_.range(input_, tile));
      count_cost(tile, count);
    });
    for (u32 s = 0; s < waiter_.size() && !(early && endless); ++s)
      if (waiter_[s] != nobody) look_at_threshold(s);
  }

private:
  static constexpr u32 nobody = 0xffffffff;

  /// Calls `visit(tile, count)`: `count` tiles of the row from `tile` on read and wait for the same.
  template <class Visit> void for_each_row_of_tiles(const Visit& visit) const {
    const tile_extent grid = consumer_.grid();
    const bool alike = consumer_.same_in_a_row(input_);
    for (u32 row = 0; row < grid.rows; ++row)
      for (u32 slice = 0; slice < grid.slices; ++slice)
        for (u32 col = 0; col < (alike ? 1 : grid.cols); ++col)
          visit(tile_coord{row, col, slice}, alike ? grid.cols : 1);
  }

  // --- coverage -----------------------------------------------------------------------------------

  void cover(tile_coord tile, tile_range range, semaphore_range guards) {
    if (stamp_ != 0 && range == last_range_ && guards == last_guards_) return;
    last_range_ = range;
    last_guards_ = guards;
    ++stamp_;
    for (u32 i = 0; i < guards.count(); ++i) {
      const u32 semaphore = guards.at(i);
      if (semaphore >= stamps_.size()) return report_unknown(tile, semaphore);
      stamps_[semaphore] = stamp_;
      if (waiter_[semaphore] == nobody) waiter_[semaphore] = index_of(tile, consumer_.grid());
    }
    if (uncovered || !require_inside(tile, range)) return;
    cusync::detail::for_each_tile(range, producer_.grid().slices, [&](tile_coord read) {
      const u32 semaphore = producer_.semaphore_of(edge_.output, read);
      if (semaphore < stamps_.size() && stamps_[semaphore] == stamp_) return;
      if (!uncovered && !precedes_start(index_of(read, producer_.grid())))
        report_uncovered(tile, read, semaphore);
    });
  }

  bool require_inside(tile_coord tile, tile_range range) {
    const tile_extent grid = producer_.grid();
    if (range.empty() || (range.row_end <= grid.rows && range.col_end <= grid.cols)) return true;
    counterexample made = about(tile);
    made.what = reads_text(tile) + " of stage '" + producer_.name() +
                "' outside of its grid: rows to " + std::to_string(range.row_end) +
                ", columns to " + std::to_string(range.col_end) + " of " + to_string(grid) +
                "; mend the dependence";
    if (!uncovered) uncovered = made;
    return false;
  }

  /// Complete before the consumer begins, by an edge between whole stages.
  bool precedes_start(u32 tile) {
    if (plan_.stages[position_].events.empty()) return false;
    if (!order_) order_.emplace(plan_, wait_style::each_step);
    return order_->precedes_start(position_, order_->position_of(producer_), tile);
  }

  void report_uncovered(tile_coord tile, tile_coord read, u32 semaphore) {
    counterexample made = about(tile);
    made.other_tile = read;
    if (!edge_.unguarded) made.semaphore = semaphore;
    made.what = reads_text(tile) + " " + to_string(read) + " of stage '" + producer_.name() +
                "' without waiting for " +
                (edge_.unguarded ? "anything (policy NoSync)"
                                 : "its semaphore " + std::to_string(semaphore)) +
                "; the policy's guards must name it";
    made.schedule = {started_text(),
                     "the block with tile " + to_string(read) + " of stage '" + producer_.name() +
                         "' is still at work",
                     "all other tiles of stage '" + producer_.name() + "' have posted",
                     "stage '" + consumer_.name() + "' tile " + to_string(tile) +
                         " passes its waits and reads tile " + to_string(read) +
                         " before it is stored"};
    uncovered = made;
  }

  void report_unknown(tile_coord tile, u32 semaphore) {
    counterexample made = about(tile);
    made.semaphore = semaphore;
    made.what = "stage '" + consumer_.name() + "' tile " + to_string(tile) +
                " waits for semaphore " + std::to_string(semaphore) + " of stage '" +
                producer_.name() + "', which has " + std::to_string(stamps_.size()) +
                "; guards must stay below semaphore_count";
    if (!uncovered) uncovered = made;
  }

  // --- thresholds ---------------------------------------------------------------------------------

  /// Runs between which a wait could tell: the first ones, and those about the wraps of 32 bits.
  static constexpr u32 runs[] = {0, 1, 0x7ffffffe, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};

  struct tally {
    u32 semaphore, run, seen, wanted, made, expected;
  };

  void look_at_threshold(u32 semaphore) {
    const u32 made = posts_->count(semaphore);
    const u32 expected = producer_.posts_expected(edge_.output, semaphore);
    for (const u32 run : runs) {
      const u32 before = run * made;
      const u32 wanted = wanted_in_run(run, expected);
      const bool soon =
          made != 0 && (reached(before + made - 1, wanted) || reached(before, wanted));
      if (soon && !early && !all_precede_start(semaphore))
        early = wrong({semaphore, run, before + made - 1, wanted, made, expected}, true);
      if (reached(before + made, wanted)) continue;
      if (!endless) endless = wrong({semaphore, run, before + made, wanted, made, expected}, false);
      return; // no run comes behind this one
    }
  }

  bool all_precede_start(u32 semaphore) {
    for (const u32 tile : posts_->of(semaphore))
      if (!precedes_start(tile)) return false;
    return true;
  }

  counterexample wrong(const tally& is, bool soon) const {
    const tile_coord tile = tile_of(waiter_[is.semaphore], consumer_.grid());
    counterexample found = about(tile);
    found.semaphore = is.semaphore;
    const std::string name =
        "semaphore " + std::to_string(is.semaphore) + " of stage '" + producer_.name() + "'";
    found.what = name + " expects " + std::to_string(is.expected) + " posts a run and gets " +
                 std::to_string(is.made) + ": stage '" + consumer_.name() + "' tile " +
                 to_string(tile) + (soon ? " passes its wait early" : " waits for ever") +
                 "; posts_expected must count the tiles and slices of the semaphore";
    std::string posted = "in run " + std::to_string(is.run) + " all " + std::to_string(is.made) +
                         " tiles of " + name;
    if (soon) {
      found.other_tile = tile_of(*(posts_->of(is.semaphore).end() - 1), producer_.grid());
      posted += " but " + to_string(*found.other_tile);
    }
    found.schedule = {started_text(), posted + " have posted",
                      "stage '" + consumer_.name() + "' tile " + to_string(tile) + " sees " +
                          std::to_string(is.seen) + ", wants " + std::to_string(is.wanted) +
                          (soon ? " and goes on" : ": no post is to come")};
    return found;
  }

  // --- cost ---------------------------------------------------------------------------------------

  void count_cost(tile_coord tile, u32 count) {
    const tile_range range = consumer_.range(input_, tile);
    const u64 read = u64{range.rows()} * range.cols() * producer_.grid().slices;
    const u64 waited = kind_ == wait_kind::semaphores ? tiles_behind(tile) : producer_.tiles();
    cost.read += read * count;
    cost.waited += waited * count;
    if (waited > read && waited - read > cost.worst) {
      cost.worst = waited - read;
      cost.worst_tile = tile;
    }
  }

  u64 tiles_behind(tile_coord tile) {
    const semaphore_range guards = consumer_.guards(input_, tile);
    if (guards == counted_guards_) return counted_tiles_;
    counted_guards_ = guards;
    counted_tiles_ = 0;
    ++stamp_;
    for (u32 i = 0; i < guards.count(); ++i) {
      const u32 semaphore = guards.at(i);
      if (semaphore >= stamps_.size() || stamps_[semaphore] == stamp_) continue;
      stamps_[semaphore] = stamp_;
      counted_tiles_ += posts_->count(semaphore);
    }
    return counted_tiles_;
  }

  // --- texts --------------------------------------------------------------------------------------

  counterexample about(tile_coord tile) const {
    counterexample made;
    made.stage = consumer_.name();
    made.tile = tile;
    made.other = producer_.name();
    return made;
  }
  std::string reads_text(tile_coord tile) const {
    return "stage '" + consumer_.name() + "' tile " + to_string(tile) + " reads tile";
  }
  std::string started_text() const {
    return "all blocks of stage '" + producer_.name() + "' have started, so those of '" +
           consumer_.name() + "' may";
  }

  const launch_plan& plan_;
  u32 position_, input_;
  const any_stage& consumer_;
  const any_stage::input_edge& edge_;
  const any_stage& producer_;
  wait_kind kind_;
  std::optional<post_list> posts_;
  std::optional<ordering> order_;
  std::vector<u64> stamps_; ///< By semaphore: the last wait that named it.
  std::vector<u32> waiter_; ///< By semaphore: the first consumer tile that waits for it.
  u64 stamp_ = 0;
  tile_range last_range_;
  semaphore_range last_guards_;
  semaphore_range counted_guards_;
  u64 counted_tiles_ = 0;
};

} // namespace cusync::sim::detail
