// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/device/cuda_backend.cuh> // cuda_backend

namespace cusync::detail {

inline constexpr u32 gate_operand = 0xffffffffu; ///< In a report: the gate, not an operand, waited.

/// The wait kernel of mode `streams`, one thread: returns once all blocks of all earlier stages of
/// the run have started, so that the stage behind it cannot take an SM from them.
///
/// `runs` is the gate's own count of its runs. `blocks_before` are the earlier stages' blocks,
/// `blocks_a_run` all stages'; `link.started` counts them all, modulo 2^32, over all runs.
///
/// (Opening at the first block of the producer, as the paper's does, can deadlock: the rest of the
/// producer then competes for SMs with consumers that wait for it.)
template <class = void> // a template, so that every translation unit may include it
__global__ void gate_kernel(u64* runs, u32 blocks_before, u32 blocks_a_run, stage_link link) {
  const u32 run = static_cast<u32>(*runs);
  spin_report where{};
  where.operand = gate_operand;
  where.wanted = run * blocks_a_run + blocks_before;
  cuda_backend::spin(link, link.started, where);
  *runs = run + 1;
}

} // namespace cusync::detail
