// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // u32, u64

namespace cusync {

/// What one block takes of an SM, in the units in which the SM hands it out.
struct block_footprint {
  u32 threads = 0;
  u32 registers = 0;
  u32 shared_bytes = 0; ///< The per-block reserve included.
};

struct sm_capacity {
  u32 blocks = 0;
  u32 threads = 0;
  u32 registers = 0;
  u32 shared_bytes = 0;
};

/// Whether `count` blocks of one kernel and one of another are resident on an SM together.
constexpr bool fit_together(sm_capacity sm, block_footprint many, u32 count, block_footprint one) {
  const auto fits = [count](u64 each, u64 other, u64 limit) {
    return each * count + other <= limit;
  };
  return fits(1, 1, sm.blocks) && fits(many.threads, one.threads, sm.threads) &&
         fits(many.registers, one.registers, sm.registers) &&
         fits(many.shared_bytes, one.shared_bytes, sm.shared_bytes);
}

/// The fewest blocks of `waiting` beside which no block of `needed` fits on an SM; at least 1.
constexpr u32 blocks_that_shut_out(sm_capacity sm, block_footprint waiting,
                                   block_footprint needed) {
  u32 count = 1;
  while (fit_together(sm, waiting, count, needed)) ++count;
  return count;
}

/// The paper's condition for doing without the wait kernel: both kernels fit in one wave. Its text
/// leaves out the factor of the number of SMs.
constexpr bool single_wave(u32 sms, u32 producer_blocks_per_sm, u32 consumer_blocks_per_sm,
                           u64 producer_blocks, u64 consumer_blocks) {
  const u64 slots = u64{sms} * detail::min(producer_blocks_per_sm, consumer_blocks_per_sm);
  return producer_blocks + consumer_blocks <= slots;
}

/// Whether consumer blocks that wait can never keep the last producer block off the GPU, in whatever
/// order blocks are dispatched: they are too few to shut it out on every SM.
constexpr bool live_without_gate(u32 sms, sm_capacity sm, block_footprint producer,
                                 block_footprint consumer, u64 consumer_blocks) {
  return consumer_blocks < u64{sms} * blocks_that_shut_out(sm, consumer, producer);
}

} // namespace cusync
