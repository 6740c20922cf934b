// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/chain.hpp>       // chain, any_stage
#include <cusync/launch_mode.hpp> // launch_mode

#include <string> // string
#include <vector> // vector

namespace cusync {

/// What a launch mode means for one stage.
struct stage_plan {
  const any_stage* stage = nullptr;
  std::vector<wait_kind> waits; ///< An entry an input.
  std::vector<bool> posted;     ///< An entry an output: somebody looks at its semaphores.
  bool early = false;           ///< Launched before the stage ahead of it is complete (mode `pdl`).
  bool triggers = false;        ///< Its blocks let the next stage be launched early (mode `pdl`).
  bool draws = false;           ///< Its blocks draw tickets.
  std::vector<const any_stage*> events; ///< Producers ordered by an event edge (mode `streams`).

  /// Bits of `duty`, for its blocks.
  u32 duties() const {
    u32 bits = 0;
    if (triggers) bits |= duty::triggers;
    if (draws) bits |= duty::draws;
    if (early) bits |= duty::stays;
    for (const wait_kind kind : waits)
      if (kind != wait_kind::none) bits |= duty::waits;
    for (const bool set : posted)
      if (set) bits |= duty::posts;
    return bits;
  }
};

/// The launches of one run, in order. Stages without tiles are left out: nobody waits for them.
struct launch_plan {
  launch_mode mode = launch_mode::serial;
  std::vector<stage_plan> stages;
};

namespace detail {

inline wait_kind kind_of(const any_stage::input_edge& input, launch_mode mode,
                         bool after_grid_wait) {
  const bool ordered = mode == launch_mode::serial || input.producer == nullptr ||
                       input.producer->tiles() == 0 ||
                       (mode == launch_mode::streams && input.whole_grid);
  if (ordered) return wait_kind::none;
  return after_grid_wait ? wait_kind::grid : wait_kind::semaphores;
}

/// A stage whose neighbour ahead is one of its `GridSync` producers waits for that grid; every stage
/// further ahead is then complete as well, since each one holds itself open for the one before it.
inline bool waits_for_grid(const any_stage& stage, launch_mode mode, const any_stage* ahead) {
  if (mode != launch_mode::pdl || ahead == nullptr) return false;
  for (const any_stage::input_edge& input : stage.declared_inputs())
    if (input.whole_grid && input.producer == ahead) return true;
  return false;
}

inline void refuse_unguarded(const any_stage& stage, const any_stage::input_edge& input,
                             launch_mode mode) {
  throw invalid_argument("operand " + std::to_string(input.operand) + " of stage '" + stage.name() +
                         "' has policy NoSync, which mode " + name_of(mode) +
                         " cannot keep safe; use mode serial or another policy");
}

inline stage_plan plan_stage(const any_stage& stage, launch_mode mode, const any_stage* ahead,
                             bool faults_kept) {
  stage_plan plan;
  plan.stage = &stage;
  plan.early = mode == launch_mode::pdl && ahead != nullptr;
  plan.draws = stage.source() == tile_source::counter;
  const bool grid_wait = waits_for_grid(stage, mode, ahead);
  for (const any_stage::input_edge& input : stage.declared_inputs()) {
    const wait_kind kind = kind_of(input, mode, grid_wait);
    if (input.unguarded && kind == wait_kind::semaphores && !faults_kept)
      refuse_unguarded(stage, input, mode);
    if (mode == launch_mode::streams && input.whole_grid && input.producer->tiles() != 0)
      plan.events.push_back(input.producer);
    plan.draws = plan.draws || kind == wait_kind::semaphores;
    plan.waits.push_back(kind);
  }
  plan.posted.resize(stage.declared_outputs().size(), false);
  return plan;
}

} // namespace detail

/// Plans a run of a sealed chain. `mode` is not `automatic`.
inline launch_plan plan_launch(const chain& chain, launch_mode mode) {
  launch_plan plan{mode, {}};
  std::vector<std::size_t> position(chain.stages().size(), 0);
  for (const any_stage* stage : chain.topological_order()) {
    if (stage->tiles() == 0) continue;
    const any_stage* ahead = plan.stages.empty() ? nullptr : plan.stages.back().stage;
    position[stage->index()] = plan.stages.size();
    plan.stages.push_back(detail::plan_stage(*stage, mode, ahead, chain.keeps_faults()));
    if (ahead != nullptr && mode == launch_mode::pdl)
      plan.stages[plan.stages.size() - 2].triggers = true;
    const stage_plan& made = plan.stages.back();
    for (std::size_t i = 0; i < made.waits.size(); ++i) {
      const any_stage::input_edge& input = stage->declared_inputs()[i];
      if (made.waits[i] == wait_kind::semaphores)
        plan.stages[position[input.producer->index()]].posted[input.output] = true;
    }
  }
  return plan;
}

/// The backend-independent part of a stage's link. `words` has an entry a stage of the chain.
inline stage_link link_of(const stage_plan& plan, u64* words, const u32* semaphores,
                          u32 semaphore_total) {
  stage_link link;
  link.word = words + plan.stage->index();
  link.semaphores = semaphores;
  link.semaphore_total = semaphore_total;
  link.stage = plan.stage->index();
  link.tiles = plan.stage->tiles();
  link.tickets = plan.stage->tickets();
  link.duties = plan.duties();
  return link;
}

} // namespace cusync
