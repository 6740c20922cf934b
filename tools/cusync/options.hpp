// SPDX-License-Identifier: MIT
#pragma once

#include "command.hpp"
#include "policies.hpp"

#include <cusync/launch_mode.hpp> // launch_mode
#include <cusync/sim/gpu.hpp>     // gpu

#include <string>      // string
#include <string_view> // string_view
#include <vector>      // vector

namespace cusync::cli {

/// What all of `run` has in common.
struct common_options {
  std::string device = "auto";
  std::string gpu;
  std::string samples = "30";
  u64 seed = 1;
  bool json = false;
  std::string markdown;
  std::string commit;
};

void add_common(command& to, common_options& options);
/// Of these, how results are written.
void add_output(command& to, common_options& options);

// Values of options. Each throws `invalid_argument` that names the option, the value and the remedy.

std::vector<std::string> split(std::string_view list); ///< At commas.
u32 count_of(std::string_view option, std::string_view text, u32 most);
std::vector<u32> counts_of(std::string_view option, std::string_view list, u32 most);
std::vector<double> times_of(std::string_view option, std::string_view list); ///< Microseconds.
launch_mode mode_of(std::string_view text);
std::vector<sync_kind> policies_of(std::string_view list);
u32 samples_of(const common_options& options);

/// A GPU to simulate: a built-in one with all or some of its SMs, or one made of numbers.
struct virtual_gpu {
  sim::gpu gpu;
  u32 full_sms = 0;       ///< Of the built-in GPU that it was made from.
  bool sms_given = false; ///< By number.
  bool altered = false;   ///< Some other number is not the built-in GPU's.

  /// As many SMs as asked for, and their share of arithmetic and bandwidth.
  void resize(u32 sms);
  std::string text() const;
};

/// "H200", "A100,sms=27", "sms=16,smem=100": numbers change the named GPU, or `otherwise`. The rest of
/// the GPU shrinks with `sms`, before the other numbers are set.
virtual_gpu virtual_gpu_of(const std::string& text, const sim::gpu& otherwise);

} // namespace cusync::cli
