// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/post_list.hpp>  // post_list
#include <cusync/wait_style.hpp> // for_each_wait, wait_style

#include <algorithm> // max
#include <optional>  // optional
#include <utility>   // exchange
#include <vector>    // vector

namespace cusync {

/// What is complete whenever a tile has passed its waits: through semaphores, transitively, since a
/// tile posts behind all that it has waited for and read; and through the launch.
///
/// Positions are those in the plan, tiles are indices (`index_of`). Memory is linear in the tiles,
/// apart from a bit a tile for each stage that others wait for as a whole. Looking back costs what is
/// found, once for all tiles that wait for the same.
class ordering {
public:
  /// `plan` outlives this.
  ordering(const launch_plan& plan, wait_style style)
      : plan_(plan), style_(style), stages_(plan.stages.size()) {
    for (u32 k = 0; k < stages_.size(); ++k) prepare(k);
    for (u32 k = 0; k < stages_.size(); ++k)
      if (stages_[k].awaited_whole) close(k);
  }

  wait_style style() const { return style_; }
  u32 position_of(const any_stage& stage) const {
    u32 position = 0;
    while (plan_.stages[position].stage != &stage) ++position;
    return position;
  }
  const post_list& posts(u32 position, u32 output) const {
    return *stages_[position].posts[output];
  }

  /// Looks back from `tile`, at the end of its waits; `precedes` then answers for it.
  void look_back(u32 position, tile_coord tile) {
    restart();
    touch(position);
    follow(position, tile);
    drain();
  }

  /// Whether that tile is complete, whatever the schedule.
  bool precedes(u32 position, u32 tile) const {
    if (position < complete_below_) return true;
    if (stages_[position].tile_seen[tile] == epoch_) return true;
    for (const u32 whole : wholes_)
      if (in_closure(whole, position, tile)) return true;
    return false;
  }
  /// All of a stage is known to be complete, without a look at its tiles.
  bool stage_precedes(u32 position) const {
    return position < complete_below_ || stages_[position].whole_seen == epoch_;
  }

  /// Whether the launch alone makes that tile complete before the stage at `start` begins.
  bool precedes_start(u32 start, u32 position, u32 tile) const {
    if (plan_.mode == launch_mode::serial) return position < start;
    for (const any_stage* producer : plan_.stages[start].events)
      if (in_closure(position_of(*producer), position, tile)) return true;
    return false;
  }

private:
  struct stage_state {
    std::vector<std::optional<post_list>> posts; ///< By output that somebody looks at.
    std::vector<std::vector<u32>> semaphore_seen;
    std::vector<u32> tile_seen, class_seen;
    std::vector<u32> producers; ///< By input: its producer's position.
    bool same_in_a_row = false; ///< One class a row and slice; else one a tile.
    bool awaited_whole = false; ///< By an event, or through a semaphore of all its tiles.
    u32 whole_seen = 0;
    std::vector<std::vector<bool>> closure; ///< By position: all complete when this stage is.
  };
  struct step {
    u32 position;
    tile_coord tile;
  };

  void prepare(u32 k) {
    const stage_plan& plan = plan_.stages[k];
    stage_state& made = stages_[k];
    made.tile_seen.resize(plan.stage->tiles(), 0);
    made.same_in_a_row = waits_same_in_a_row(plan);
    made.class_seen.resize(made.same_in_a_row
                               ? u64{plan.stage->grid().rows} * plan.stage->grid().slices
                               : plan.stage->tiles());
    made.posts.resize(plan.posted.size());
    made.semaphore_seen.resize(plan.posted.size());
    for (u32 output = 0; output < plan.posted.size(); ++output) {
      if (!plan.posted[output]) continue;
      const u32 semaphores = plan.stage->declared_outputs()[output].semaphores;
      made.posts[output].emplace(*plan.stage, output);
      made.semaphore_seen[output].resize(semaphores, 0);
      for (u32 s = 0; s < semaphores; ++s)
        if (made.posts[output]->count(s) == plan.stage->tiles()) made.awaited_whole = true;
    }
    for (u32 input = 0; input < plan.waits.size(); ++input)
      made.producers.push_back(plan.waits[input] == wait_kind::none
                                   ? k
                                   : position_of(*plan.stage->declared_inputs()[input].producer));
    for (const any_stage* producer : plan.events)
      stages_[position_of(*producer)].awaited_whole = true;
  }

  /// What is complete when all of stage k is: once, for all who wait for that.
  void close(u32 k) {
    restart();
    touch(k);
    const any_stage& stage = *plan_.stages[k].stage;
    for (u32 tile = 0; tile < stage.tiles(); ++tile) {
      stages_[k].tile_seen[tile] = epoch_;
      enter(k, tile_of(tile, stage.grid()));
    }
    drain();
    std::vector<std::vector<bool>> closure(k + 1);
    for (u32 i = 0; i <= k; ++i) {
      const u32 tiles = plan_.stages[i].stage->tiles();
      closure[i].resize(tiles);
      for (u32 tile = 0; tile < tiles; ++tile) closure[i][tile] = precedes(i, tile);
    }
    stages_[k].closure = std::move(closure);
  }

  bool in_closure(u32 whole, u32 position, u32 tile) const {
    return position <= whole && stages_[whole].closure[position][tile];
  }

  void restart() {
    ++epoch_;
    complete_below_ = 0;
    wholes_.clear();
    touched_.assign(stages_.size(), false);
  }

  /// What the launch has completed before any tile of stage k begins.
  void touch(u32 k) {
    if (touched_[k]) return;
    touched_[k] = true;
    if (plan_.mode == launch_mode::serial) complete_below_ = std::max(complete_below_, k);
    for (const any_stage* producer : plan_.stages[k].events) see_whole(position_of(*producer));
  }

  void see_whole(u32 k) {
    if (std::exchange(stages_[k].whole_seen, epoch_) != epoch_) wholes_.push_back(k);
  }

  /// The tile's waits come next, unless a tile that waits for the same has been here.
  void enter(u32 k, tile_coord tile) {
    const tile_extent grid = plan_.stages[k].stage->grid();
    const u32 of =
        stages_[k].same_in_a_row ? tile.row * grid.slices + tile.slice : index_of(tile, grid);
    if (std::exchange(stages_[k].class_seen[of], epoch_) != epoch_) pending_.push_back({k, tile});
  }

  void drain() {
    while (!pending_.empty()) {
      const step next = pending_.back();
      pending_.pop_back();
      follow(next.position, next.tile);
    }
  }

  void follow(u32 k, tile_coord tile) {
    const stage_plan& plan = plan_.stages[k];
    for (u32 input = 0; input < plan.waits.size(); ++input) {
      if (plan.waits[input] == wait_kind::none) continue;
      for_each_wait(*plan.stage, input, tile, style_, [&](tile_range, semaphore_range guards) {
        if (plan.waits[input] == wait_kind::grid)
          complete_below_ = std::max(complete_below_, k); // each stage ends behind the one ahead
        else
          pass(stages_[k].producers[input], plan.stage->declared_inputs()[input].output, guards);
      });
    }
  }

  void pass(u32 producer, u32 output, semaphore_range guards) {
    std::vector<u32>& seen = stages_[producer].semaphore_seen[output];
    for (u32 i = 0; i < guards.count(); ++i) {
      const u32 semaphore = guards.at(i);
      if (semaphore < seen.size() && std::exchange(seen[semaphore], epoch_) != epoch_)
        complete(producer, output, semaphore);
    }
  }

  void complete(u32 producer, u32 output, u32 semaphore) {
    const any_stage& stage = *plan_.stages[producer].stage;
    const post_list& list = posts(producer, output);
    if (stage.posts_expected(output, semaphore) != list.count(semaphore)) return; // says nothing
    if (list.count(semaphore) == stage.tiles() && !stages_[producer].closure.empty())
      return see_whole(producer);
    touch(producer);
    for (const u32 tile : list.of(semaphore)) {
      stages_[producer].tile_seen[tile] = epoch_;
      enter(producer, tile_of(tile, stage.grid()));
    }
  }

  const launch_plan& plan_;
  wait_style style_;
  std::vector<stage_state> stages_; ///< By position.
  std::vector<step> pending_;
  u32 epoch_ = 0;          ///< What carries this stamp was seen since `restart`.
  u32 complete_below_ = 0; ///< All stages at lower positions are complete.
  std::vector<u32> wholes_;
  std::vector<bool> touched_;
};

} // namespace cusync
