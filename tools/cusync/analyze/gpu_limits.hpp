// SPDX-License-Identifier: MIT
#pragma once

#include "trace.hpp"

#include <cusync/sim/gpu.hpp> // gpu

#include <optional> // optional
#include <string>   // string

namespace cusync::analyze {

/// A GPU of a trace as the wave model needs it.
struct gpu_limits {
  i64 id = 0;
  std::string name;    ///< As the trace has it.
  sim::gpu gpu;        ///< Its own name is that of the description behind it.
  std::string from;    ///< Where the limits come from, for a person.
  std::string unknown; ///< Why there are none; empty where there are.
};

/// The limits that the trace recorded for `device` (null: nothing), and for the rest those of
/// `described`, else of the built-in GPU of its name, else of its compute capability.
gpu_limits limits_of(i64 id, const device_properties* device,
                     const std::optional<sim::gpu>& described);

} // namespace cusync::analyze
