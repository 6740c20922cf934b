// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>

#include <array>     // array
#include <cstdio>    // popen
#include <fstream>   // ifstream
#include <stdexcept> // runtime_error
#include <string>    // string

namespace cusync::cli {

/// What `cusync ARGUMENTS` prints on stdout. Throws unless it ends with 0.
inline std::string output_of(const std::string& arguments) {
  FILE* pipe = popen((std::string(CUSYNC_PROGRAM) + " " + arguments).c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " CUSYNC_PROGRAM);
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t read; (read = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), read);
  if (pclose(pipe) != 0) throw std::runtime_error("cusync " + arguments + " failed");
  return text;
}

inline nlohmann::json json_of(const std::string& arguments) {
  return nlohmann::json::parse(output_of(arguments + " --json"));
}

inline nlohmann::json test_data(const std::string& file) {
  return nlohmann::json::parse(std::ifstream(std::string(CUSYNC_TEST_DATA) + "/" + file));
}

} // namespace cusync::cli
