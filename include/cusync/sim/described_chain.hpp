// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/errors.hpp>                // invalid_argument
#include <cusync/sim/chain_description.hpp> // chain_description
#include <cusync/sim/cusync.hpp>            // CuSync
#include <cusync/sim/described_stage.hpp>   // described_stage, described_stage_of

#include <string> // string
#include <vector> // vector

namespace cusync::sim {

/// What becomes of orders that are no permutation, of policies that are wrong, of missing blocks.
enum class faults {
  refused, ///< `invalid_argument`, as in any chain: for what is to be timed.
  kept,    ///< For `check` to find, with a counterexample.
};

/// A chain made of its description. It can be timed (`predict`) and checked, not executed.
class described_chain : public CuSync {
public:
  /// Throws `invalid_argument` for names that are not declared, grids that do not match, numbers that
  /// cannot be worked with.
  explicit described_chain(const chain_description& from, faults found = faults::refused)
      : described_chain(from, {.mode = from.mode, .gate = from.gate, .slots = from.slots}, found) {}

  /// The same under a schedule of its own.
  described_chain(const chain_description& from, schedule how, faults found = faults::refused)
      : CuSync(from.device, std::move(how)) {
    if (found == faults::kept) keep_faults();
    for (const buffer_description& each : from.buffers) buffer(each.name);
    for (const stage_description& each : from.stages) add(each);
    for (const dependence_description& edge : from.dependences)
      dependency(named(edge.producer), named(edge.consumer), operand<0>{}, edge.reads, edge.policy);
    for (const initial_read_description& each : from.initial_reads)
      initial(buffer_named(each.buffer), named(each.consumer), tile_in(from, each.buffer),
              each.reads);
  }

private:
  void add(const stage_description& from) {
    for (const described_stage* other : described_)
      if (other->name() == from.name)
        throw invalid_argument("two stages are named '" + from.name + "'; give each its own name");
    from.order.validate();
    if (from.source == tile_source::counter)
      keep<described_stage_of<tile_source::counter>>(from);
    else
      keep<described_stage_of<tile_source::block_index>>(from);
  }

  template <class Stage> void keep(const stage_description& from) {
    stage_options options{.blocks = from.blocks};
    options.tile = from.tile;
    if (!from.writes.empty()) options.writes = buffer_named(from.writes);
    auto& made = stage<Stage>(from.name, from.grid, from.order, options);
    kernel(
        made, [] {}, from.block, from.cost);
    described_.push_back(&made);
  }

  described_stage& named(const std::string& name) {
    for (described_stage* stage : described_)
      if (stage->name() == name) return *stage;
    throw invalid_argument("no stage is named '" + name + "'");
  }

  cusync::buffer buffer_named(const std::string& name) const {
    for (u32 i = 0; i < buffers().size(); ++i)
      if (buffers()[i] == name) return {i};
    throw invalid_argument("no buffer is named '" + name + "'");
  }

  static element_extent tile_in(const chain_description& from, const std::string& buffer) {
    for (const buffer_description& each : from.buffers)
      if (each.name == buffer) return each.tile;
    return {1, 1};
  }

  std::vector<described_stage*> described_; ///< By index.
};

} // namespace cusync::sim
