// SPDX-License-Identifier: MIT
#pragma once

#include "json_file.hpp"

#include <cusync/sim/chain_description.hpp> // chain_description

#include <utility> // pair

namespace cusync::cli {

// The parts of a chain's description that say what is read, and how it is waited for. All throw
// `file_error`.

inline constexpr std::pair<const char*, sim::gate_kind> gate_names[] = {
    {"all_blocks", sim::gate_kind::all_blocks},
    {"first_block", sim::gate_kind::first_block},
    {"as_needed", sim::gate_kind::as_needed},
    {"none", sim::gate_kind::none}};

/// [rows, cols], each at least 1.
element_extent elements_of(const json_value& from);

const sim::stage_description& stage_named(const json_value& name, const sim::chain_description& in);
const sim::buffer_description& buffer_named(const json_value& name,
                                            const sim::chain_description& in);

/// What is read: a stage's output, or a buffer.
struct source_tiles {
  tile_extent grid;
  element_extent tile;
};

/// What is not given follows from the grids and tiles of the two sides.
sim::any_dependence reads_of(const json_value& from, const source_tiles& source,
                             const sim::stage_description& consumer);

sim::any_policy policy_of(const json_value& from, const sim::any_dependence& reads,
                          const sim::stage_description& producer,
                          const sim::stage_description& consumer);

} // namespace cusync::cli
