// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h> // format_string, format_args

#include <string> // string

namespace cusync::cli {

/// `fmt::vformat`, compiled once (format.cpp): header-only fmt takes ten seconds a file.
std::string vformatted(fmt::string_view text, fmt::format_args args);

template <class... Args> std::string formatted(fmt::format_string<Args...> text, Args&&... args) {
  return vformatted(text, fmt::make_format_args(args...));
}

} // namespace cusync::cli
