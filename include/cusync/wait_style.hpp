// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/launch_plan.hpp> // stage_plan, wait_kind

namespace cusync {

/// How a kernel waits. Which one does is not declared: what is proved, is proved for both.
enum class wait_style {
  each_step,  ///< `wait(operand, tile, step)` ahead of each step's loads.
  whole_tile, ///< `wait_all(operand, tile)` once.
};

inline constexpr wait_style wait_styles[] = {wait_style::each_step, wait_style::whole_tile};

/// Calls `visit(range, guards)` for each wait of `tile` on an input: what it makes safe to read, and the
/// semaphores that it looks at.
template <class Visit>
void for_each_wait(const any_stage& stage, u32 input, tile_coord tile, wait_style style,
                   Visit visit) {
  if (style == wait_style::whole_tile)
    return visit(stage.range(input, tile), stage.guards(input, tile));
  const step_range steps = stage.steps(input, tile);
  for (u32 step = steps.begin; step < steps.end; ++step)
    visit(stage.range(input, tile, step), stage.guards(input, tile, step));
}

/// All tiles of a row, of one slice, wait for the same semaphores.
inline bool waits_same_in_a_row(const stage_plan& plan) {
  for (u32 input = 0; input < plan.waits.size(); ++input)
    if (plan.waits[input] == wait_kind::semaphores && !plan.stage->same_in_a_row(input))
      return false;
  return true;
}

/// Calls `visit(position, tile)` for each position of the order that a block takes, whatever the tile:
/// an order may be wrong, and a stage of one tile a block may lack blocks.
template <class Visit> void for_each_taken(const any_stage& stage, Visit visit) {
  const u32 taken = stage.source() == tile_source::counter
                        ? stage.tiles()
                        : detail::min(stage.tiles(), stage.blocks());
  for (u32 position = 0; position < taken; ++position) visit(position, stage.tile_at(position));
}

} // namespace cusync
