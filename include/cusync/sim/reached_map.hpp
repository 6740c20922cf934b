// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // u32, u64

#include <algorithm> // max, min
#include <bit>       // countr_one
#include <vector>    // vector

namespace cusync::sim {

/// Which semaphores have all posts that the run at hand waits for, by the set that they belong to: 64 a
/// word, so that a look at a whole row of tiles costs a few tests and not one a tile.
class reached_map {
public:
  /// Adds a set of semaphores, which count from 0; returns its number.
  u32 add_set(u32 semaphores) {
    sets_.push_back({semaphores, std::vector<word>(ceil_div(semaphores, bits))});
    return static_cast<u32>(sets_.size() - 1);
  }

  /// Runs do not overlap, so the first to ask for another run finds nothing reached.
  void enter(u32 run) {
    if (run == run_) return;
    run_ = run;
    for (set& each : sets_) {
      each.words.assign(each.words.size(), {});
      each.reached = 0;
    }
  }

  /// `semaphore` has its posts; the last of them can be seen from then on.
  void add(u32 of, u32 semaphore, u64 visible_from) {
    set& owner = sets_[of];
    word& holds = owner.words[semaphore / bits];
    const u64 bit = u64{1} << semaphore % bits;
    if ((holds.reached & bit) == 0) ++owner.reached;
    holds.reached |= bit;
    holds.visible_from = std::max(holds.visible_from, visible_from);
    owner.visible_from = std::max(owner.visible_from, visible_from);
  }

  /// Whether all of the set's semaphores are reached and seen at `time`.
  bool complete(u32 of, u64 time) const {
    return sets_[of].reached == sets_[of].semaphores && sets_[of].visible_from <= time;
  }

  /// How many of the `count` semaphores from `first` on, one behind the other, are surely reached and
  /// seen at `time`. Too few where some other one of a word was posted later.
  u32 leading(u32 of, u32 first, u32 count, u64 time) const {
    u32 found = 0;
    while (found < count) {
      const word& holds = sets_[of].words[(first + found) / bits];
      const u32 skipped = (first + found) % bits;
      const u32 wanted = std::min(bits - skipped, count - found);
      if (holds.visible_from > time) return found;
      const u32 ones = static_cast<u32>(std::countr_one(holds.reached >> skipped));
      if (ones < wanted) return found + ones;
      found += wanted;
    }
    return found;
  }

private:
  static constexpr u32 bits = 64;
  struct word {
    u64 reached = 0;
    u64 visible_from = 0; ///< The latest of all.
  };
  struct set {
    u32 semaphores = 0;
    std::vector<word> words;
    u32 reached = 0;
    u64 visible_from = 0;
  };
  std::vector<set> sets_;
  u32 run_ = 0;
};

} // namespace cusync::sim
