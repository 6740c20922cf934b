// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/gate.hpp>             // blocks_that_shut_out
#include <cusync/sim/launch_shape.hpp> // launch_shape

#include <algorithm> // max, min
#include <vector>    // vector

namespace cusync::sim::detail {

/// How many waiting blocks keep a needed block off the GPU.
class residency {
public:
  residency(const launch_shape& shape, u32 slots, const std::vector<stage_load>& loads)
      : places_(slots != 0 ? slots : shape.device().sms),
        sm_(slots != 0 ? sm_capacity{1, 0, 0, 0} : capacity_of(shape.device())) {
    for (const stage_plan& plan : shape.plan().stages) {
      per_sm_.push_back(shape.per_sm(*plan.stage));
      blocks_.push_back(slots != 0
                            ? block_footprint{}
                            : footprint_of(shape.device(), loads[plan.stage->index()].block));
    }
  }

  /// Whether so many waiting blocks of each stage can keep all of the `needed` stages' blocks off every
  /// SM. Where several stages wait, an SM is filled by blocks of one of them.
  bool shut_out(const std::vector<u64>& waiting, const std::vector<u32>& needed) const {
    u64 shut = 0;
    for (u32 k = 0; k < waiting.size(); ++k) {
      u32 each = 1;
      for (const u32 stage : needed)
        each = std::max(each, blocks_that_shut_out(sm_, blocks_[k], blocks_[stage]));
      if (each <= per_sm_[k]) shut += waiting[k] / each;
    }
    return shut >= places_;
  }

  /// Whether so many, in whatever mix, never can: even if each were as large as the largest of them.
  bool never_shut_out(const std::vector<u64>& waiting) const {
    block_footprint largest{};
    u64 count = 0;
    for (u32 k = 0; k < waiting.size(); ++k) {
      if (waiting[k] == 0) continue;
      count += waiting[k];
      largest.threads = std::max(largest.threads, blocks_[k].threads);
      largest.registers = std::max(largest.registers, blocks_[k].registers);
      largest.shared_bytes = std::max(largest.shared_bytes, blocks_[k].shared_bytes);
    }
    u64 fewest = std::max<u64>(count, 1);
    for (const block_footprint& needed : blocks_)
      fewest = std::min<u64>(fewest, blocks_that_shut_out(sm_, largest, needed));
    return count < places_ * fewest;
  }

  u64 places() const { return places_; }

private:
  u64 places_;
  sm_capacity sm_;
  std::vector<u32> per_sm_;
  std::vector<block_footprint> blocks_; ///< By position in the plan.
};

} // namespace cusync::sim::detail
