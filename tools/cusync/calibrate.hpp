// SPDX-License-Identifier: MIT
#pragma once

#include "gpu_constants.hpp"
#include "synthetic.hpp"

#include <vector> // vector

namespace cusync::cli {

/// What to measure: grids of 66, 132 and 265 tiles, tiles of 2 and 7 us, and nothing that the fitted
/// GPU is judged by later.
std::vector<synthetic_request> calibration_requests();

struct gpu_fit {
  sim::gpu gpu;
  std::vector<double> deviation; ///< By constant, in ns; negative: these times do not tell it.
  double error = 0;              ///< Root mean square, relative.
};

/// The constants with which the virtual GPU comes closest to the measured times: least squares of the
/// relative errors, starting at `start`.
gpu_fit fit_constants(const sim::gpu& start, const std::vector<synthetic_row>& measured);

} // namespace cusync::cli
