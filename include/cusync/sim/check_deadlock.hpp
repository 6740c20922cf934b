// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/ordering.hpp>            // wait_style, for_each_wait
#include <cusync/sim/check_report.hpp>    // property_result, counterexample
#include <cusync/sim/check_residency.hpp> // residency

#include <optional> // optional
#include <string>   // string, to_string
#include <vector>   // vector

namespace cusync::sim::detail {

/// Looks for a schedule of mode `streams` in which waiting blocks keep out the blocks that they wait for,
/// where gates open early or not at all.
///
/// Stage by stage, in launch order, it chooses which tiles are complete; all others that must wait then
/// may take places. Fewer complete tiles leave more that wait, so it completes no more than what opens
/// the gates and ends the stages that others wait for as a whole. All choices are tried in stages of at
/// most `few` tiles that can run, some in larger ones: what it finds is a deadlock, but beyond that size
/// it may miss one.
class deadlock_search {
public:
  deadlock_search(const launch_plan& plan, const residency& places, bool gated, wait_style style)
      : plan_(plan), places_(places), gated_(gated), style_(style), done_(plan.stages.size()),
        posts_(plan.stages.size()), waiting_(plan.stages.size(), 0),
        started_(plan.stages.size(), false) {
    for (u32 k = 0; k < plan.stages.size(); ++k)
      for (const any_stage::output_set& set : plan.stages[k].stage->declared_outputs())
        posts_[k].emplace_back(set.semaphores, 0);
  }

  std::optional<counterexample> run() {
    place(0);
    return found_;
  }
  /// Every choice was tried: there is no deadlock where none was found.
  bool exact() const { return exact_; }

  /// The most blocks of each stage that can wait at once.
  std::vector<u64> most_waiting() {
    std::vector<u64> most;
    for (u32 k = 0; k < plan_.stages.size(); ++k) {
      const u64 tiles = sort(k).waiting.size();
      most.push_back(std::min<u64>(tiles, stage_at(k).blocks()));
    }
    return most;
  }

private:
  static constexpr u32 few = 6;
  static constexpr u64 budget = 30'000'000; ///< Tiles looked at.

  /// The positions of a stage's order that wait, and those that could run.
  struct sorted {
    std::vector<u32> waiting, ready;
  };

  const any_stage& stage_at(u32 k) const { return *plan_.stages[k].stage; }
  u32 position_of(const any_stage& stage) const {
    u32 k = 0;
    while (&stage_at(k) != &stage) ++k;
    return k;
  }

  void place(u32 k) {
    if (found_) return;
    if (k == plan_.stages.size()) return judge();
    if (!open(k)) return go_on(k, {}, 0, false);
    const sorted tiles = sort(k);
    if (looked_at_ > budget) {
      exact_ = false;
      return;
    }
    if (stage_at(k).source() == tile_source::counter)
      draw(k, tiles);
    else
      choose(k, tiles);
  }

  /// Whether blocks of stage k may start.
  bool open(u32 k) const {
    for (u32 before = 0; gated_ && before < k; ++before)
      if (!started_[before]) return false;
    for (const any_stage* producer : plan_.stages[k].events)
      if (done_[position_of(*producer)].size() != producer->tiles()) return false;
    return true;
  }

  /// Asks once a row where all tiles of a row wait for the same.
  sorted sort(u32 k) {
    enum answer : char { unknown, no, yes };
    const any_stage& stage = stage_at(k);
    const tile_extent grid = stage.grid();
    std::vector<char> rows(waits_same_in_a_row(plan_.stages[k]) ? u64{grid.rows} * grid.slices : 0);
    sorted tiles;
    for_each_taken(stage, [&](u32 position, tile_coord tile) {
      char own = grid.contains(tile) ? unknown : no;
      char& known = rows.empty() || own == no ? own : rows[tile.row * grid.slices + tile.slice];
      if (known == unknown) known = must_wait(k, tile) ? yes : no;
      (known == yes ? tiles.waiting : tiles.ready).push_back(position);
    });
    looked_at_ += stage.tiles();
    return tiles;
  }

  struct wait {
    u32 producer, output, semaphore;
  };

  std::optional<wait> must_wait(u32 k, tile_coord tile) const {
    std::optional<wait> first;
    const stage_plan& plan = plan_.stages[k];
    for (u32 input = 0; input < plan.waits.size() && !first; ++input) {
      if (plan.waits[input] != wait_kind::semaphores) continue;
      const any_stage::input_edge& edge = plan.stage->declared_inputs()[input];
      const u32 producer = position_of(*edge.producer);
      for_each_wait(*plan.stage, input, tile, style_, [&](tile_range, semaphore_range guards) {
        for (u32 i = 0; i < guards.count() && !first; ++i)
          if (!passes(producer, edge.output, guards.at(i)))
            first = wait{producer, edge.output, guards.at(i)};
      });
    }
    return first;
  }

  bool passes(u32 k, u32 output, u32 semaphore) const {
    const std::vector<u32>& seen = posts_[k][output];
    return semaphore >= seen.size() ||
           reached(seen[semaphore], stage_at(k).posts_expected(output, semaphore));
  }

  // --- choices ------------------------------------------------------------------------------------

  /// One tile a block: any set of tiles that can run may be complete.
  void choose(u32 k, const sorted& tiles) {
    const u64 waiting = tiles.waiting.size();
    const bool idle = stage_at(k).blocks() > stage_at(k).tiles(); // such a block opens a gate, too
    const u32 ready = static_cast<u32>(tiles.ready.size());
    go_on(k, {}, waiting, waiting != 0 || idle);
    if (ready == 0) return;
    if (ready <= few) {
      for (u32 set = 1; set < (1u << ready); ++set) {
        std::vector<u32> complete;
        for (u32 i = 0; i < ready; ++i)
          if ((set >> i & 1) != 0) complete.push_back(tiles.ready[i]);
        go_on(k, complete, waiting, true);
      }
      return;
    }
    exact_ = false;
    for (const u32 one : {tiles.ready.back(), tiles.ready.front(), tiles.ready[ready / 2]})
      go_on(k, {one}, waiting, true);
    go_on(k, tiles.ready, waiting, true);
  }

  /// Blocks that draw tiles: each runs those that it can, until it must wait.
  void draw(u32 k, const sorted& tiles) {
    const u32 most = static_cast<u32>(std::min<u64>(stage_at(k).blocks(), tiles.waiting.size()));
    const u32 least = most > few ? most - 1 : 0; // between the two, rarely
    if (most > few) exact_ = false;
    for (u32 stuck = most + 1; stuck-- > least;) {
      std::vector<u32> complete;
      for (const u32 position : tiles.ready)
        if (stuck != 0 && position < tiles.waiting[stuck - 1]) complete.push_back(position);
      go_on(k, complete, stuck, stuck != 0);
    }
    if (stage_at(k).blocks() > tiles.waiting.size())
      go_on(k, tiles.ready, tiles.waiting.size(), true);
  }

  void go_on(u32 k, const std::vector<u32>& complete, u64 waiting, bool started) {
    if (found_) return;
    count(k, complete, 1);
    done_[k] = complete;
    waiting_[k] = waiting;
    started_[k] = started;
    place(k + 1);
    count(k, complete, static_cast<u32>(-1));
  }

  void count(u32 k, const std::vector<u32>& complete, u32 posts) {
    for (const u32 position : complete) {
      const tile_coord tile = stage_at(k).tile_at(position);
      if (!stage_at(k).grid().contains(tile)) continue;
      for (u32 output = 0; output < posts_[k].size(); ++output) {
        const u32 semaphore =
            posts_[k][output].empty() ? 0 : stage_at(k).semaphore_of(output, tile);
        if (semaphore < posts_[k][output].size()) posts_[k][output][semaphore] += posts;
      }
    }
  }

  // --- the end ------------------------------------------------------------------------------------

  void judge() {
    std::vector<u32> needed;
    for (u32 k = 0; k < plan_.stages.size(); ++k)
      if (open(k) && done_[k].size() + waiting_[k] < stage_at(k).tiles()) needed.push_back(k);
    u64 all = 0;
    for (const u64 each : waiting_) all += each;
    if (all != 0 && places_.shut_out(waiting_, needed)) report(needed);
  }

  void report(const std::vector<u32>& needed) {
    counterexample made;
    for (u32 k = 0; k < plan_.stages.size(); ++k) {
      const std::string name = "stage '" + stage_at(k).name() + "'";
      if (!done_[k].empty())
        made.schedule.push_back(name + ": tiles complete: " + std::to_string(done_[k].size()) +
                                ", tile " + to_string(stage_at(k).tile_at(done_[k].front())) +
                                " first");
      if (waiting_[k] == 0) continue;
      const tile_coord tile = stage_at(k).tile_at(sort(k).waiting.front());
      const wait on = *must_wait(k, tile);
      const u32 seen = posts_[on.producer][on.output][on.semaphore];
      made.schedule.push_back(
          "as many as fit of " + std::to_string(waiting_[k]) + " blocks of " + name +
          " take the free places, one with tile " + to_string(tile) + ": it waits for semaphore " +
          std::to_string(on.semaphore) + " of stage '" + stage_at(on.producer).name() +
          "', which has " + std::to_string(seen) + " posts of " +
          std::to_string(stage_at(on.producer).posts_expected(on.output, on.semaphore)));
      if (!made.stage.empty()) continue;
      made.stage = stage_at(k).name();
      made.tile = tile;
      made.semaphore = on.semaphore;
      made.other = stage_at(on.producer).name();
    }
    for (const u32 k : needed)
      made.schedule.push_back("no place is left for " +
                              std::to_string(stage_at(k).tiles() - done_[k].size() - waiting_[k]) +
                              " tiles of stage '" + stage_at(k).name() + "'");
    made.what = "blocks that wait can fill all " + std::to_string(places_.places()) +
                " places while a block that they wait for has none: stage '" + made.stage +
                "' tile " + to_string(made.tile) + " then waits for semaphore " +
                std::to_string(*made.semaphore) + " of stage '" + made.other +
                "' for ever; use gate all_blocks or mode serial";
    found_ = made;
  }

  const launch_plan& plan_;
  const residency& places_;
  bool gated_;
  wait_style style_;
  std::vector<std::vector<u32>> done_;               ///< By stage: positions that are complete.
  std::vector<std::vector<std::vector<u32>>> posts_; ///< By stage, output, semaphore.
  std::vector<u64> waiting_;
  std::vector<bool> started_;
  u64 looked_at_ = 0;
  bool exact_ = true;
  std::optional<counterexample> found_;
};

} // namespace cusync::sim::detail
