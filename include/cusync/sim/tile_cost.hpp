// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/gpu.hpp> // gpu

#include <algorithm> // max, min
#include <cmath>     // llround
#include <cstdio>    // snprintf
#include <string>    // string

namespace cusync::sim {

/// What a tile of a stage costs: its work, or its time where that is known.
struct tile_cost {
  double flops = 0; ///< On the tensor cores.
  double bytes = 0; ///< From and to memory.
  u64 ns = 0;       ///< Not 0: the time itself.
};

/// How long a tile takes, and what that follows from.
struct tile_time {
  u64 ns = 0;
  tile_cost cost;
  u32 per_sm = 1;    ///< Blocks that share an SM's arithmetic.
  u64 resident = 1;  ///< Blocks that share the memory.
  double tflops = 0; ///< An SM's rate over `per_sm`.
  double gb_s = 0; ///< The GPU's bandwidth over `resident`, or what the SM can move over `per_sm`.
  double flops_ns = 0;
  double bytes_ns = 0;
};

/// The larger of the FLOPs over the block's share of an SM, and the bytes over its share of the
/// bandwidth, in a stage of `blocks` blocks of which an SM holds up to `per_sm`.
inline tile_time time_of(const gpu& device, const tile_cost& cost, u32 per_sm, u32 blocks) {
  tile_time time;
  time.cost = cost;
  time.per_sm = std::max(1u, std::min(per_sm, ceil_div(blocks, device.sms)));
  time.resident = std::max<u64>(1, std::min(u64{blocks}, u64{device.sms} * per_sm));
  time.tflops = device.fp16_tflops / device.sms / time.per_sm;
  time.gb_s = std::min(device.hbm_gb_s / static_cast<double>(time.resident),
                       gpu::bytes_per_clock * device.boost_mhz * 1e-3 / time.per_sm);
  time.flops_ns = cost.flops / time.tflops * 1e-3;
  time.bytes_ns = cost.bytes / time.gb_s;
  time.ns = cost.ns != 0 ? cost.ns
                         : static_cast<u64>(std::llround(std::max(time.flops_ns, time.bytes_ns)));
  return time;
}

/// The inputs of an estimate, in one line.
inline std::string explain(const tile_time& time) {
  char text[256];
  if (time.cost.ns != 0)
    std::snprintf(text, sizeof text, "%.2f us a tile, as given",
                  static_cast<double>(time.ns) * 1e-3);
  else
    std::snprintf(text, sizeof text,
                  "%.2f us a tile: %.3g MFLOP at %.3g TFLOP/s (%u blocks share an SM) = %.2f us, "
                  "%.3g KB at %.3g GB/s (%llu blocks share the memory) = %.2f us",
                  static_cast<double>(time.ns) * 1e-3, time.cost.flops * 1e-6, time.tflops,
                  time.per_sm, time.flops_ns * 1e-3, time.cost.bytes * 1e-3, time.gb_s,
                  static_cast<unsigned long long>(time.resident), time.bytes_ns * 1e-3);
  return text;
}

} // namespace cusync::sim
