// SPDX-License-Identifier: MIT
#include "program.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <vector>

namespace cusync::cli {
namespace {

/// A block of a document that shows a call: ```console, `$ cusync ARGUMENTS`, and what that prints.
struct shown {
  std::string where, arguments, text;
};

std::vector<shown> shown_in(const std::filesystem::path& page) {
  const std::string begin = "$ cusync ";
  std::vector<shown> found;
  std::ifstream file(page);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (inside && line == "```") inside = false;
    if (inside) found.back().text += line + "\n";
    if (line.starts_with(begin)) {
      inside = true;
      found.push_back({page.filename().string() + ": " + line, line.substr(begin.size()), ""});
    }
  }
  return found;
}

TEST(Docs, ShowWhatTheProgramPrints) {
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator("docs"))
    if (entry.path().extension() == ".md")
      for (const shown& call : shown_in(entry.path())) {
        EXPECT_EQ(call.text, output_of(call.arguments)) << call.where;
        ++compared;
      }
  EXPECT_GT(compared, 2);
}

} // namespace
} // namespace cusync::cli
