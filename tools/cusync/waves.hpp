// SPDX-License-Identifier: MIT
#pragma once

#include "table.hpp"

#include <cusync/sim/waves.hpp> // wave_load
#include <cusync/tile.hpp>      // tile_extent

#include <string>  // string
#include <utility> // pair
#include <vector>  // vector

namespace cusync::cli {

/// One stage of a row: its grid, and how many of its blocks run at once.
struct waves_stage {
  tile_extent grid;
  u64 per_wave = 1;

  sim::wave_load load() const { return {grid.count(), per_wave}; }
};

/// One chain: a row of a table.
struct waves_row {
  std::string label;
  std::vector<waves_stage> stages;
};

/// Waves and utilisation of each stage, and waves of the chain in stream order and overlapped.
/// `label` is the first column's name.
table waves_table(const std::string& label, const std::vector<waves_row>& rows);

/// The wave tables of the paper (arXiv 2305.13450), each under its heading: computed, from the grids and
/// the blocks per wave that it states, as all other tables are.
std::vector<std::pair<std::string, table>> paper_tables();

} // namespace cusync::cli
