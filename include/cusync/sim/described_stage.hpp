// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/any_dependence.hpp> // any_dependence
#include <cusync/sim/any_order.hpp>      // any_order
#include <cusync/sim/any_policy.hpp>     // any_policy
#include <cusync/stage.hpp>              // any_stage, stage_options

#include <string>  // string
#include <utility> // move
#include <vector>  // vector

namespace cusync::sim {

/// A stage whose order, policies and number of edges are known at run time only. It can be checked and
/// timed, not executed: no kernel could be compiled against it.
class described_stage : public any_stage {
public:
  described_stage(std::string name, u32 index, tile_extent grid, any_order order,
                  tile_source source, stage_options options)
      : any_stage(std::move(name), index, grid, source, options), order_(std::move(order)) {}

  tile_coord tile_at(u32 position) const override { return order_.tile_at(position, grid()); }

  step_range steps(u32 input, tile_coord tile) const override {
    return sides_[input].reads.steps(tile);
  }
  tile_range range(u32 input, tile_coord tile) const override {
    return sides_[input].reads.reads(tile);
  }
  tile_range range(u32 input, tile_coord tile, u32 step) const override {
    return sides_[input].reads.reads(tile, step);
  }
  bool same_in_a_row(u32 input) const override {
    const side& of = sides_[input];
    return of.reads.same_in_a_row() && !of.policy.waits_by_tile();
  }
  semaphore_range guards(u32 input, tile_coord tile) const override {
    return guards_of(sides_[input], tile, range(input, tile));
  }
  semaphore_range guards(u32 input, tile_coord tile, u32 step) const override {
    return guards_of(sides_[input], tile, range(input, tile, step));
  }
  u32 semaphore_of(u32 output, tile_coord tile) const override {
    return posted_[output].semaphore_of(tile);
  }
  u32 posts_expected(u32 output, u32 semaphore) const override {
    return posted_[output].posts_expected(semaphore);
  }

  // --- called by the chain ----------------------------------------------------------------------

  u32 provide(const any_policy& policy) {
    for (u32 output = 0; output < posted_.size(); ++output)
      if (posted_[output] == policy) return output;
    posted_.push_back(policy);
    outputs_.push_back({policy.semaphore_count(), 0});
    return static_cast<u32>(posted_.size() - 1);
  }

  /// An operand has no name here: it is the stage's next.
  template <int>
  void depend(const any_stage& producer, u32 output, const any_policy& policy,
              const any_dependence& reads, bool whole_grid, bool unguarded) {
    input_edge edge;
    edge.operand = static_cast<int>(sides_.size());
    edge.producer = &producer;
    edge.output = output;
    edge.whole_grid = whole_grid;
    edge.unguarded = unguarded;
    inputs_.push_back(edge);
    sides_.push_back({reads, policy});
  }

private:
  struct side {
    any_dependence reads;
    any_policy policy;
  };

  semaphore_range guards_of(const side& of, tile_coord tile, tile_range needed) const {
    return of.policy.guards(needed, tile, grid());
  }

  any_order order_;
  std::vector<side> sides_;        ///< By input.
  std::vector<any_policy> posted_; ///< By output.
};

/// The same with its source of tiles, which a chain takes from the type.
template <tile_source Source> struct described_stage_of final : described_stage {
  described_stage_of(std::string name, u32 index, tile_extent grid, any_order order,
                     stage_options options)
      : described_stage(std::move(name), index, grid, std::move(order), Source, options) {}
};

} // namespace cusync::sim
