// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/wait_style.hpp> // for_each_taken

#include <vector> // vector

namespace cusync {

/// Which tiles post each semaphore of one output of a stage, in one run. Linear in both.
class post_list {
public:
  post_list(const any_stage& stage, u32 output)
      : begin_(stage.declared_outputs()[output].semaphores + 1, 0) {
    const u32 semaphores = static_cast<u32>(begin_.size() - 1);
    std::vector<u32> posted; // by position in the order
    posted.reserve(stage.tiles());
    for_each_taken(stage, [&](u32, tile_coord tile) {
      const bool inside = stage.grid().contains(tile);
      posted.push_back(inside ? stage.semaphore_of(output, tile) : semaphores);
      if (posted.back() < semaphores) ++begin_[posted.back() + 1];
    });
    for (u32 i = 0; i < semaphores; ++i) begin_[i + 1] += begin_[i];
    tiles_.resize(begin_.back());
    std::vector<u32> next(begin_.begin(), begin_.end() - 1);
    for_each_taken(stage, [&](u32 position, tile_coord tile) {
      if (posted[position] < semaphores)
        tiles_[next[posted[position]]++] = index_of(tile, stage.grid());
    });
  }

  /// Posts that it gets in a run.
  u32 count(u32 semaphore) const { return begin_[semaphore + 1] - begin_[semaphore]; }

  /// Indices of the tiles that post it (`tile_of`), in the order in which they are taken.
  struct span {
    const u32* first;
    const u32* last;
    const u32* begin() const { return first; }
    const u32* end() const { return last; }
  };
  span of(u32 semaphore) const {
    return {tiles_.data() + begin_[semaphore], tiles_.data() + begin_[semaphore + 1]};
  }

private:
  std::vector<u32> begin_; ///< By semaphore, in `tiles_`; one more than there are.
  std::vector<u32> tiles_;
};

} // namespace cusync
