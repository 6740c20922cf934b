// SPDX-License-Identifier: MIT
#pragma once

#include "options.hpp"

#include <string> // string

namespace cusync::cli {

/// `run synthetic --calibrate`: fits the virtual GPU's costs to this GPU, or to the times in the JSON
/// of an earlier calibration where `from` names one. Returns the exit status.
int run_calibrate(const common_options& options, const std::string& from);

} // namespace cusync::cli
