// SPDX-License-Identifier: MIT
#pragma once

#include "byte_source.hpp" // progress_report
#include "gpu_limits.hpp"
#include "trace.hpp"

#include <cusync/sim/gpu.hpp> // gpu

#include <optional> // optional
#include <string>   // string
#include <vector>   // vector

namespace cusync::analyze {

/// A kernel as it was launched, on one GPU. Launches that are the same share it.
struct kernel_shape {
  enum class gap { none, no_launch, no_limits, does_not_fit, communication };

  u32 name = 0; ///< In `analysis::names`.
  u32 gpu = 0;  ///< In `analysis::gpus`.
  analyze::launch launch;
  gap missing = gap::none; ///< Why no wave can be counted.
  u32 per_sm = 0;          ///< Occupancy: blocks an SM holds at once.
  double waves = 0;
  /// As many blocks as the SMs hold, no more: perhaps one block a place that loops over its tiles.
  bool may_be_persistent = false;

  bool usable() const { return missing == gap::none; }
};

/// Two kernels, one right behind the other in a stream. Times are nanoseconds.
struct kernel_pair {
  u32 first = 0; ///< In `analysis::kernels`; the second is the next one.
  u32 group = 0; ///< In `analysis::groups`.
  i64 gap = 0; ///< From the end of the first to the start of the second; less than 0: they overlap.
  i64 host = 0;         ///< Its part ahead of the second's launch call: the GPU waits for the host.
  i64 call = 0;         ///< Its part within that call.
  double idle = 0;      ///< Of the whole GPU, in the first one's last wave.
  double most = 0;      ///< What overlap could win, were there nothing to pay for it.
  double realistic = 0; ///< By the wave simulator.

  i64 rest() const { return gap - host - call; }
  bool late() const { return host + call > 0; } ///< The first had ended when the call returned.
};

/// Pairs of the same kernels, launched alike, in the same stream. Times are sums of nanoseconds.
struct pair_group {
  u32 first = 0, second = 0; ///< In `analysis::shapes`.
  u32 lane = 0;
  u64 count = 0;
  double first_duration = 0, second_duration = 0;
  double gap = 0, host = 0, call = 0, idle = 0, most = 0, realistic = 0;
  double saved = 0; ///< By the simulator, of a pair of average durations.
};

struct gpu_total {
  u32 gpu = 0;
  u64 kernels = 0, pairs = 0;
  double busy = 0; ///< Durations of all kernels.
  double host = 0, call = 0, rest = 0, idle = 0, most = 0, realistic = 0;
  double realistic_late = 0; ///< Part of it: pairs whose launch came late.
};

struct analysis {
  std::vector<kernel_record> kernels; ///< By stream, in the order of their starts.
  std::vector<u32> shape_of;          ///< Of each kernel.
  std::vector<kernel_shape> shapes;
  std::vector<kernel_pair> pairs;
  std::vector<pair_group> groups; ///< Best first.
  std::vector<gpu_limits> gpus;
  std::vector<gpu_total> totals; ///< Of the GPUs that ran kernels.
  std::vector<lane_id> lanes;
  std::vector<u32> gpu_of_lane;
  std::vector<std::string> names;
  u64 streams = 0;                ///< With kernels.
  time_span span;                 ///< First kernel start to last end.
  double base = 0;                ///< What percentages refer to, in nanoseconds.
  u64 steps = 0;                  ///< Marked; 0: `base` is the span.
  std::string summary;            ///< What was read, in a line.
  std::vector<std::string> notes; ///< What it cannot know, a line each.

  gpu_total total() const; ///< Of all GPUs.
  double percent(double ns) const { return base > 0 ? 100 * ns / base : 0; }
  /// Of all GPUs together: of what they all had.
  double total_percent(double ns) const {
    return percent(ns) / static_cast<double>(totals.empty() ? 1 : totals.size());
  }
};

/// Throws `invalid_argument`, with the reason, where no kernel can be analysed.
analysis analyse(trace&& from, const std::optional<sim::gpu>& described = {},
                 const progress_report& report = {});

} // namespace cusync::analyze
