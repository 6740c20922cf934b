// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/gpu.hpp> // gpu

namespace cusync::cli {

/// What launching and handing over cost, as fields of the virtual GPU's description.
struct gpu_constant {
  const char* name;
  u64 sim::gpu::*field;
  bool fitted; ///< By `run synthetic --calibrate`; the others show in none of its times.
};

/// `first_launch_ns` is paid once, before a burst of runs. `block_start_ns` always comes with one of
/// the delays before it: only their sum could be fitted. So it is with `post_ns` and the two waits, but
/// a post can be measured alone.
inline constexpr gpu_constant gpu_constants[] = {
    {"first_launch_ns", &sim::gpu::first_launch_ns, false},
    {"run_gap_ns", &sim::gpu::run_gap_ns, true},
    {"stream_gap_ns", &sim::gpu::stream_gap_ns, true},
    {"early_launch_ns", &sim::gpu::early_launch_ns, true},
    {"gate_ns", &sim::gpu::gate_ns, true},
    {"grid_wait_ns", &sim::gpu::grid_wait_ns, true},
    {"block_start_ns", &sim::gpu::block_start_ns, false},
    {"turnaround_ns", &sim::gpu::turnaround_ns, true},
    {"claim_ns", &sim::gpu::claim_ns, true},
    {"satisfied_wait_ns", &sim::gpu::satisfied_wait_ns, true},
    {"post_ns", &sim::gpu::post_ns, false},
    {"hand_over_ns", &sim::gpu::hand_over_ns, true},
};

} // namespace cusync::cli
