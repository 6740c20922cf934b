// SPDX-License-Identifier: MIT
#include "waves.hpp"
#include "format.hpp"

#include <algorithm> // max

namespace cusync::cli {
namespace {

constexpr int wave_decimals = 4;

std::string text_of(tile_extent grid) {
  return formatted("{}x{}x{}", grid.rows, grid.cols, grid.slices);
}

/// One number where all stages have the same, which is the usual case.
std::string per_wave_text(const waves_row& row) {
  std::string text;
  bool same = true;
  for (const waves_stage& stage : row.stages) {
    same = same && stage.per_wave == row.stages.front().per_wave;
    text += (text.empty() ? "" : ", ") + std::to_string(stage.per_wave);
  }
  return same ? std::to_string(row.stages.front().per_wave) : text;
}

std::vector<std::string> columns_of(const std::string& label, std::size_t stages) {
  std::vector<std::string> columns{label, "blocks per wave"};
  for (std::size_t i = 1; i <= stages; ++i)
    for (const char* column : {"grid", "waves", "used %"})
      columns.push_back(formatted("{} {}", column, i));
  columns.insert(columns.end(), {"blocks", "stream waves", "overlapped waves", "whole", "fewer %"});
  return columns;
}

std::vector<cell> cells_of(const waves_row& row, std::size_t stages) {
  std::vector<cell> cells{row.label, per_wave_text(row)};
  std::vector<sim::wave_load> loads;
  u64 blocks = 0;
  for (const waves_stage& stage : row.stages) {
    const sim::wave_load load = stage.load();
    cells.insert(cells.end(), {text_of(stage.grid), cell(load.waves(), wave_decimals),
                               cell(100 * load.utilisation(), 1)});
    loads.push_back(load);
    blocks += load.blocks;
  }
  cells.insert(cells.end(), 3 * (stages - row.stages.size()), cell());
  const sim::chain_waves waves = sim::waves_of(loads);
  const double saved = static_cast<double>(waves.in_stream_order - waves.whole_overlapped()) /
                       static_cast<double>(waves.in_stream_order);
  cells.insert(cells.end(), {blocks, waves.in_stream_order, cell(waves.overlapped, wave_decimals),
                             waves.whole_overlapped(), cell(100 * saved, 1)});
  return cells;
}

} // namespace

table waves_table(const std::string& label, const std::vector<waves_row>& rows) {
  std::size_t stages = 0;
  for (const waves_row& row : rows) stages = std::max(stages, row.stages.size());
  table result(columns_of(label, stages));
  for (const waves_row& row : rows) result.add(cells_of(row, stages));
  return result;
}

} // namespace cusync::cli
