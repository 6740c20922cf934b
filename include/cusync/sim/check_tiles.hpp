// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/check_report.hpp> // property_result
#include <cusync/wait_style.hpp>       // for_each_taken

#include <optional> // optional
#include <string>   // string, to_string
#include <vector>   // vector

namespace cusync::sim::detail {

/// Whether the blocks of each stage take each tile once, and idle blocks none. Time: linear in the
/// tiles; memory: a bit a tile.
class tiles_check {
public:
  explicit tiles_check(const launch_plan& plan) : plan_(plan) {}

  property_result run() {
    u64 tiles = 0, idle = 0;
    for (const stage_plan& plan : plan_.stages) {
      const any_stage& stage = *plan.stage;
      tiles += stage.tiles();
      if (stage.blocks() > stage.tiles()) idle += stage.blocks() - stage.tiles();
      if (auto found = in(stage)) return {property::tiles, verdict::refuted, found->what, found};
    }
    return {property::tiles,
            verdict::proved,
            "each of " + std::to_string(tiles) + " tiles is taken once; " + std::to_string(idle) +
                " blocks find no tile and leave without a post",
            {}};
  }

private:
  static std::optional<counterexample> in(const any_stage& stage) {
    const tile_extent grid = stage.grid();
    std::vector<bool> taken(stage.tiles(), false);
    std::optional<counterexample> found;
    for_each_taken(stage, [&](u32 position, tile_coord tile) {
      if (found) return;
      if (!grid.contains(tile))
        found = wrong(stage, tile, "lies outside of the grid " + to_string(grid), position);
      else if (taken[index_of(tile, grid)])
        found = wrong(stage, tile, "is taken a second time", position);
      else
        taken[index_of(tile, grid)] = true;
    });
    for (u32 i = 0; i < taken.size() && !found; ++i)
      if (!taken[i]) found = wrong(stage, tile_of(i, grid), "is taken by no block", stage.blocks());
    // A block draws until its first ticket past the last tile; the last ticket closes the run.
    const u64 draws =
        u64{stage.blocks()} + (stage.source() == tile_source::counter ? stage.tiles() : 0);
    if (!found && draws != stage.tickets())
      found = wrong(stage, {},
                    "is not the last of a run that draws " + std::to_string(draws) + " tickets",
                    stage.tickets());
    return found;
  }

  static counterexample wrong(const any_stage& stage, tile_coord tile, const std::string& why,
                              u32 position) {
    counterexample made;
    made.stage = stage.name();
    made.tile = tile;
    const std::string what = "stage '" + stage.name() + "' tile " + to_string(tile) + " " + why;
    made.what = what +
                "; an order gives each tile once, and a stage of one tile a block has as many "
                "blocks as tiles";
    made.schedule = {"a block of stage '" + stage.name() + "' takes position " +
                         std::to_string(position) + " of the order",
                     what};
    return made;
  }

  const launch_plan& plan_;
};

} // namespace cusync::sim::detail
