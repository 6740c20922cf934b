// SPDX-License-Identifier: MIT
#include "format.hpp"

#include <fmt/format.h> // vformat

namespace cusync::cli {

std::string vformatted(fmt::string_view text, fmt::format_args args) {
  return fmt::vformat(text, args);
}

} // namespace cusync::cli
