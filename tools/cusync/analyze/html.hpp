// SPDX-License-Identifier: MIT
#pragma once

#include "analysis.hpp"

#include <string> // string

namespace cusync::analyze {

/// A page that needs nothing but itself: the step as a picture, the wins marked in it.
std::string html_of(const analysis& found, const std::string& title);

} // namespace cusync::analyze
