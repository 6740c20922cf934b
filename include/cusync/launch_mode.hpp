// SPDX-License-Identifier: MIT
#pragma once

namespace cusync {

/// How the stages of a chain are launched.
enum class launch_mode {
  serial,    ///< Stream order. The baseline, and what always works.
  pdl,       ///< One stream, programmatic dependent launch: needs sm_90.
  streams,   ///< A stream a stage and a gate before each: the paper's way, for older GPUs.
  automatic, ///< `pdl` where the GPU and the kernels allow it, else `streams`, else `serial`.
};

constexpr const char* name_of(launch_mode mode) {
  switch (mode) {
  case launch_mode::serial:
    return "serial";
  case launch_mode::pdl:
    return "pdl";
  case launch_mode::streams:
    return "streams";
  case launch_mode::automatic:
    break;
  }
  return "automatic";
}

} // namespace cusync
