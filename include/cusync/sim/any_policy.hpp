// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/policy/batched_row_sync.hpp> // BatchedRowSync
#include <cusync/policy/conv2d_tile_sync.hpp> // Conv2DTileSync
#include <cusync/policy/grid_sync.hpp>        // GridSync
#include <cusync/policy/no_sync.hpp>          // NoSync
#include <cusync/policy/row_sync.hpp>         // RowSync
#include <cusync/policy/strided_sync.hpp>     // StridedSync
#include <cusync/policy/tile_sync.hpp>        // TileSync
#include <cusync/sim/any_dependence.hpp>      // any_dependence

#include <algorithm> // max, min
#include <limits>    // numeric_limits
#include <utility>   // move
#include <variant>   // variant, visit, holds_alternative
#include <vector>    // vector

namespace cusync::sim {

/// A policy written out. Host only; nothing says that it is right.
struct table_policy {
  tile_extent producer;
  std::vector<u32> semaphores; ///< By `index_of` the producer's tile.
  std::vector<u32> posts;      ///< Expected, by semaphore.
  std::vector<semaphore_range>
      waits; ///< By `index_of` the consumer's tile; empty: as `guards` says.

  u32 semaphore_count() const { return static_cast<u32>(posts.size()); }
  u32 semaphore_of(tile_coord tile) const { return semaphores[index_of(tile, producer)]; }
  u32 posts_expected(u32 semaphore) const { return posts[semaphore]; }
  /// From the lowest to the highest semaphore of the range's tiles.
  semaphore_range guards(tile_range range) const {
    u32 lowest = std::numeric_limits<u32>::max();
    u32 highest = 0;
    for (u32 row = range.row_begin; row < range.row_end; ++row)
      for (u32 col = range.col_begin; col < range.col_end; col += range.col_stride)
        for (u32 slice = 0; slice < producer.slices; ++slice) {
          if (!producer.contains({row, col, slice})) continue;
          lowest = std::min(lowest, semaphore_of({row, col, slice}));
          highest = std::max(highest, semaphore_of({row, col, slice}));
        }
    if (lowest > highest) return {};
    return {lowest, 1, 0, highest - lowest + 1, 1};
  }

  friend bool operator==(const table_policy&, const table_policy&) = default;
};

static_assert(sync_policy<table_policy>);

/// A policy known at run time only. It calls the very code that a kernel executes.
class any_policy {
public:
  using variant = std::variant<GridSync, NoSync, TileSync, RowSync, BatchedRowSync, StridedSync,
                               Conv2DTileSync, table_policy>;

  any_policy() = default;
  any_policy(variant policy) : policy_(std::move(policy)) {}

  u32 semaphore_count() const {
    return std::visit([](const auto& policy) { return policy.semaphore_count(); }, policy_);
  }
  u32 semaphore_of(tile_coord tile) const {
    return std::visit([&](const auto& policy) { return policy.semaphore_of(tile); }, policy_);
  }
  u32 posts_expected(u32 semaphore) const {
    return std::visit([&](const auto& policy) { return policy.posts_expected(semaphore); },
                      policy_);
  }
  semaphore_range guards(tile_range range) const {
    return std::visit([&](const auto& policy) { return policy.guards(range); }, policy_);
  }
  /// A table says what each consumer tile waits for.
  bool waits_by_tile() const {
    const auto* table = std::get_if<table_policy>(&policy_);
    return table != nullptr && !table->waits.empty();
  }
  /// What a table says of this consumer tile, or else what guards the range that it reads.
  semaphore_range guards(tile_range range, tile_coord consumer, tile_extent grid) const {
    if (!waits_by_tile()) return guards(range);
    return std::get<table_policy>(policy_).waits[index_of(consumer, grid)];
  }

  // What a chain asks of the type where it is known.
  bool whole_grid() const { return std::holds_alternative<GridSync>(policy_); }
  bool unguarded() const { return std::holds_alternative<NoSync>(policy_); }
  bool covers_all() const {
    return std::visit([]<class Policy>(const Policy&) { return covers_every_range<Policy>; },
                      policy_);
  }

  /// Throws `invalid_argument`.
  void validate() const {
    std::visit(
        [](const auto& policy) {
          if constexpr (requires { policy.validate(); }) policy.validate();
        },
        policy_);
  }

  const variant& get() const { return policy_; }
  friend bool operator==(const any_policy&, const any_policy&) = default;

private:
  variant policy_;
};

static_assert(sync_policy<any_policy>);

/// The policy of that type which follows from a dependence.
template <derivable_policy Policy> any_policy derive_any(const any_dependence& reads) {
  return std::visit([](const auto& known) -> any_policy { return {derive<Policy>(known)}; },
                    reads.get());
}

} // namespace cusync::sim
