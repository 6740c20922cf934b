// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/gate.hpp> // block_footprint, sm_capacity
#include <cusync/tile.hpp> // u32, u64

#include <vector> // vector

namespace cusync::sim {

/// What is free on each SM. Blocks of several kernels may share one.
class machine {
public:
  machine(u32 sms, sm_capacity each) : places_(sms, place{each, 0}) {}

  u32 sms() const { return static_cast<u32>(places_.size()); }

  bool fits(u32 sm, const block_footprint& block) const {
    const sm_capacity& free = places_[sm].free;
    return free.blocks > 0 && block.threads <= free.threads && block.registers <= free.registers &&
           block.shared_bytes <= free.shared_bytes;
  }
  void take(u32 sm, const block_footprint& block) {
    sm_capacity& free = places_[sm].free;
    free.blocks -= 1;
    free.threads -= block.threads;
    free.registers -= block.registers;
    free.shared_bytes -= block.shared_bytes;
  }
  void give_back(u32 sm, const block_footprint& block, u64 usable_from) {
    sm_capacity& free = places_[sm].free;
    free.blocks += 1;
    free.threads += block.threads;
    free.registers += block.registers;
    free.shared_bytes += block.shared_bytes;
    places_[sm].usable_from = usable_from;
  }
  /// When the place that was given back last can run a block.
  u64 usable_from(u32 sm) const { return places_[sm].usable_from; }

private:
  struct place {
    sm_capacity free;
    u64 usable_from;
  };
  std::vector<place> places_;
};

} // namespace cusync::sim
