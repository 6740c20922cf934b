// SPDX-License-Identifier: MIT
#pragma once

#include "mlp.hpp"
#include "options.hpp"
#include "progress.hpp"

#include <vector> // vector

namespace cusync::cli {

/// Runs the MLP on the virtual GPU: numbers are real and checked, times virtual.
std::vector<mlp_batch> mlp_on_virtual_gpu(const mlp_request& request, const sim::gpu& gpu);

} // namespace cusync::cli
