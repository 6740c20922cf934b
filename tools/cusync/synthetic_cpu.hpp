// SPDX-License-Identifier: MIT
#pragma once

#include "synthetic.hpp"

#include <cusync/sim/gpu.hpp> // gpu

namespace cusync::cli {

/// One run of a burst on the virtual GPU: executed, checked and timed. Of `synthetic_row` the fields of
/// a GPU stay empty.
synthetic_row synthetic_on_virtual_gpu(const synthetic_problem& problem,
                                       const synthetic_variant& variant, const sim::gpu& gpu);

/// The time alone, without executing anything.
double predicted_us(const synthetic_problem& problem, const synthetic_variant& variant,
                    const sim::gpu& gpu);

} // namespace cusync::cli
