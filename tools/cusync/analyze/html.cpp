// SPDX-License-Identifier: MIT
#include "html.hpp"
namespace cusync::analyze {
std::string html_of(const analysis&, const std::string&) { return {}; }
} // namespace cusync::analyze
