// SPDX-License-Identifier: MIT
#pragma once

#include "byte_source.hpp" // progress_report
#include "trace.hpp"

#include <string>      // string
#include <string_view> // string_view

namespace cusync::analyze {

/// Reads what `nsys export --type sqlite` writes, after NVIDIA's published schema. Tables and columns
/// that are not there are gone without. Throws `invalid_argument` where the file is no database, or
/// a damaged one.
trace read_nsight(const std::string& path, const progress_report& report = {});

/// The same from memory, for tests.
trace read_nsight_image(std::string_view image);

} // namespace cusync::analyze
