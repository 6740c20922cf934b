// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/chain_description.hpp> // chain_description
#include <cusync/sim/report.hpp>            // report
#include <cusync/sim/tile_cost.hpp>         // tile_time
#include <cusync/sim/timing.hpp>            // timing_options

#include <string>      // string
#include <string_view> // string_view
#include <vector>      // vector

namespace cusync::cli {

/// What all edges of a chain get: stream order, a policy, or what the file says.
enum class edge_choice { stream, grid, row, tile, own };

constexpr edge_choice edge_choices[] = {edge_choice::stream, edge_choice::grid, edge_choice::row,
                                        edge_choice::tile, edge_choice::own};

constexpr const char* name_of(edge_choice choice) {
  switch (choice) {
  case edge_choice::stream:
    return "StreamSync";
  case edge_choice::grid:
    return "GridSync";
  case edge_choice::row:
    return "RowSync";
  case edge_choice::tile:
    return "TileSync";
  case edge_choice::own:
    break;
  }
  return "own";
}

/// The chain with that choice on all of its edges; stream order is mode `serial`.
sim::chain_description with_choice(const sim::chain_description& chain, edge_choice choice);

/// Whether that choice is what the file says already.
bool is_own(const sim::chain_description& chain, edge_choice choice);

/// The names of the file's own policies: "RowSync", or "RowSync, TileSync" of several edges.
std::string policies_of(const sim::chain_description& chain);

struct simulate_settings {
  u64 seed = 1;
  double jitter = 0; ///< Part of a tile's time.
  sim::timing_options timing{.style = sim::waits::ahead};
};

/// One simulated choice.
struct simulated {
  edge_choice choice = edge_choice::stream;
  std::string refused; ///< Why the chain cannot run so; then the rest is empty.
  std::string doubt;   ///< What `sim::check` says against it: a wrong chain has a time as well.
  sim::report found;
  std::string mode_reason;
  std::vector<sim::tile_time> tiles; ///< By stage.

  bool ran() const { return refused.empty(); }
  /// Of the chain: whole ones a stage where each waits for all of the one ahead.
  double waves() const;
  /// Of the tiles' time, work and waits together.
  double waiting_share() const;
};

simulated simulate(const sim::chain_description& chain, edge_choice choice,
                   const simulate_settings& settings);

} // namespace cusync::cli
