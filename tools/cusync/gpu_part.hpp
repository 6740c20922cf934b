// SPDX-License-Identifier: MIT
#pragma once

#include "mlp.hpp"
#include "results.hpp"
#include "synthetic.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <string> // string
#include <vector> // vector

namespace cusync::cli {

// What needs a GPU: defined in the .cu files, and in no_cuda.cpp where the program is built without
// CUDA. All but the first throw `invalid_argument` where no GPU works.

/// Why no GPU can be used; empty where one can.
std::string why_no_gpu();

/// Card, driver, clocks.
facts gpu_facts();

/// The current GPU as the simulator sees it: its own numbers, the costs of the built-in GPU that its
/// name contains, else of an H200.
sim::gpu current_gpu();

std::vector<mlp_batch> mlp_on_gpu(const mlp_request& request);

/// Measures all variants on all problems, each verified first.
std::vector<synthetic_row> synthetic_on_gpu(const synthetic_request& request);

/// Nanoseconds of a post, measured alone.
u64 post_ns_on_gpu(u32 samples);

void handover_on_gpu(results& found, const common_options& options);
void hooks_on_gpu(results& found, const common_options& options);

/// Whether to use the GPU, as `--device` says. Throws where it asks for one that is not there.
inline bool use_gpu(const common_options& options) {
  if (options.device == "cpu") return false;
  if (options.device != "auto" && options.device != "gpu")
    throw invalid_argument("--device: '" + options.device + "' is none; choose auto, gpu or cpu");
  const std::string reason = why_no_gpu();
  if (options.device == "gpu" && !reason.empty())
    throw invalid_argument("--device gpu: " + reason + "; use --device cpu for the virtual GPU");
  return reason.empty();
}

} // namespace cusync::cli
