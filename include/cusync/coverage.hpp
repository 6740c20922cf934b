// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/dependence.hpp>  // dependence
#include <cusync/errors.hpp>      // invalid_argument
#include <cusync/sync_policy.hpp> // sync_policy, semaphore_range

#include <string> // string, to_string
#include <vector> // vector

namespace cusync {

namespace detail {

/// Walks rows, columns and slices of `range` in a grid with `slices` slices.
template <class Visit> void for_each_tile(tile_range range, u32 slices, Visit visit) {
  for (u32 row = range.row_begin; row < range.row_end; ++row)
    for (u64 col = range.col_begin; col < range.col_end; col += range.col_stride)
      for (u32 slice = 0; slice < slices; ++slice)
        visit(tile_coord{row, static_cast<u32>(col), slice});
}

template <class Visit> void for_each_tile(tile_extent grid, Visit visit) {
  for_each_tile({0, grid.rows, 0, grid.cols, 1}, grid.slices, visit);
}

} // namespace detail

/// Throws `invalid_argument` unless every semaphore is posted in a run exactly as often as the
/// policy expects. Linear in the producer's tiles.
template <sync_policy Policy> void require_reached(const Policy& policy, tile_extent producer) {
  std::vector<u32> posts(policy.semaphore_count(), 0);
  detail::for_each_tile(producer, [&](tile_coord tile) {
    const u32 semaphore = policy.semaphore_of(tile);
    if (semaphore >= posts.size())
      throw invalid_argument("policy posts tile " + to_string(tile) + " to semaphore " +
                             std::to_string(semaphore) + " of " + std::to_string(posts.size()) +
                             "; semaphore_of must stay below semaphore_count");
    ++posts[semaphore];
  });
  for (u32 semaphore = 0; semaphore < posts.size(); ++semaphore) {
    const u32 expected = policy.posts_expected(semaphore);
    if (expected != posts[semaphore])
      throw invalid_argument("policy expects " + std::to_string(expected) + " posts on semaphore " +
                             std::to_string(semaphore) + ", the producer grid " +
                             to_string(producer) + " makes " + std::to_string(posts[semaphore]) +
                             "; posts_expected must count the tiles and slices of the semaphore");
  }
}

/// Throws `invalid_argument` unless for every step of every consumer tile the policy's `guards` name
/// the semaphore of each producer tile read. Linear in the reads.
template <sync_policy Policy, dependence Dependence>
void require_coverage(const Policy& policy, const Dependence& dependence) {
  const tile_extent producer = dependence.producer();
  std::vector<u64> waited(policy.semaphore_count(), 0); // stamp of the last range that named it
  u64 stamp = 0;
  const auto check = [&](tile_coord consumer, tile_range range) {
    const semaphore_range guards = policy.guards(range);
    ++stamp;
    for (u32 position = 0; position < guards.count(); ++position) {
      const u32 semaphore = guards.at(position);
      if (semaphore >= waited.size())
        throw invalid_argument("policy waits for semaphore " + std::to_string(semaphore) + " of " +
                               std::to_string(waited.size()) + " before consumer tile " +
                               to_string(consumer) + "; guards must stay below semaphore_count");
      waited[semaphore] = stamp;
    }
    detail::for_each_tile(range, producer.slices, [&](tile_coord tile) {
      if (!producer.contains(tile))
        throw invalid_argument("consumer tile " + to_string(consumer) + " reads producer tile " +
                               to_string(tile) + " outside the grid " + to_string(producer) +
                               "; mend the dependence");
      const u32 semaphore = policy.semaphore_of(tile);
      if (semaphore >= waited.size() || waited[semaphore] != stamp)
        throw invalid_argument("policy does not cover its dependence: consumer tile " +
                               to_string(consumer) + " reads producer tile " + to_string(tile) +
                               " without waiting for its semaphore " + std::to_string(semaphore) +
                               "; guards must name it");
    });
  };
  detail::for_each_tile(dependence.consumer(), [&](tile_coord consumer) {
    check(consumer, dependence.reads(consumer));
    const step_range steps = dependence.steps(consumer);
    for (u32 step = steps.begin; step < steps.end; ++step)
      check(consumer, dependence.reads(consumer, step));
  });
}

} // namespace cusync
