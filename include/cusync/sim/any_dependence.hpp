// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/dependence/conv2d_dependence.hpp>  // conv2d_dependence
#include <cusync/dependence/grid_dependence.hpp>    // grid_dependence
#include <cusync/dependence/row_dependence.hpp>     // row_dependence
#include <cusync/dependence/strided_dependence.hpp> // strided_dependence
#include <cusync/dependence/tile_dependence.hpp>    // tile_dependence

#include <algorithm> // max, min
#include <utility>   // move
#include <variant>   // variant, visit
#include <vector>    // vector

namespace cusync::sim {

/// A dependence written out: for each consumer tile what each of its steps reads. Host only.
struct table_dependence {
  tile_extent producer_grid, consumer_grid;
  std::vector<std::vector<tile_range>> steps_of; ///< By `index_of` the consumer's tile.

  tile_extent producer() const { return producer_grid; }
  tile_extent consumer() const { return consumer_grid; }
  step_range steps(tile_coord tile) const { return {0, static_cast<u32>(at(tile).size())}; }
  tile_range reads(tile_coord tile, u32 step) const { return at(tile)[step]; }
  /// One step's range, or the smallest that holds those of all steps.
  tile_range reads(tile_coord tile) const {
    const std::vector<tile_range>& all = at(tile);
    if (all.size() == 1) return all.front();
    tile_range hull;
    for (const tile_range& each : all) {
      if (each.empty()) continue;
      if (hull.empty()) {
        hull = {each.row_begin, each.row_end, each.col_begin, each.col_end, 1};
        continue;
      }
      hull = {std::min(hull.row_begin, each.row_begin), std::max(hull.row_end, each.row_end),
              std::min(hull.col_begin, each.col_begin), std::max(hull.col_end, each.col_end), 1};
    }
    return hull;
  }

private:
  const std::vector<tile_range>& at(tile_coord tile) const {
    return steps_of[index_of(tile, consumer_grid)];
  }
};

static_assert(dependence<table_dependence>);

/// A dependence known at run time only.
class any_dependence {
public:
  using variant = std::variant<grid_dependence, row_dependence, tile_dependence, strided_dependence,
                               conv2d_dependence, table_dependence>;

  any_dependence() = default;
  any_dependence(variant reads) : reads_(std::move(reads)) {}

  tile_extent producer() const {
    return std::visit([](const auto& reads) { return reads.producer(); }, reads_);
  }
  tile_extent consumer() const {
    return std::visit([](const auto& reads) { return reads.consumer(); }, reads_);
  }
  step_range steps(tile_coord tile) const {
    return std::visit([&](const auto& reads) { return reads.steps(tile); }, reads_);
  }
  tile_range reads(tile_coord tile, u32 step) const {
    return std::visit([&](const auto& reads) { return reads.reads(tile, step); }, reads_);
  }
  tile_range reads(tile_coord tile) const {
    return std::visit([&](const auto& reads) { return reads.reads(tile); }, reads_);
  }

  bool same_in_a_row() const {
    return std::visit([]<class Reads>(const Reads&) { return same_reads_in_a_row<Reads>; }, reads_);
  }

  /// Throws `invalid_argument`.
  void validate() const {
    std::visit(
        [](const auto& reads) {
          if constexpr (requires { reads.validate(); }) reads.validate();
        },
        reads_);
  }

  const variant& get() const { return reads_; }

private:
  variant reads_;
};

static_assert(dependence<any_dependence>);

} // namespace cusync::sim
