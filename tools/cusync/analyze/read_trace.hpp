// SPDX-License-Identifier: MIT
#pragma once

#include "byte_source.hpp" // progress_report
#include "trace.hpp"

#include <string> // string

namespace cusync::analyze {

/// Reads a trace of any kind that is known; the file's first bytes say which. Throws
/// `invalid_argument` that names the file.
trace read_trace(const std::string& path, const progress_report& report = {});

} // namespace cusync::analyze
