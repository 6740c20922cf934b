// SPDX-License-Identifier: MIT
#pragma once

#include "options.hpp"
#include "table.hpp"

#include <string>  // string
#include <utility> // pair
#include <vector>  // vector

namespace cusync::cli {

std::string version();
std::string commit(); ///< That the program was built from.

/// The command line, as results record it; set by `main`.
std::string& command_line();

/// Throws `invalid_argument` where `path` cannot be written; `option` asked for it.
void require_writable(const std::string& option, const std::string& path);

using facts = std::vector<std::pair<std::string, std::string>>;

/// What a subcommand found, with all that is needed to find it again. Printed as text or as JSON; as
/// Markdown it is what docs/results keeps, so nothing of that is typed by hand.
class results {
public:
  /// Throws `invalid_argument` where the Markdown file cannot be written: before the work, not after.
  results(std::string title, const common_options& options);

  void fact(std::string name, std::string value) {
    facts_.emplace_back(std::move(name), std::move(value));
  }
  void fact(const facts& several) { facts_.insert(facts_.end(), several.begin(), several.end()); }
  /// A number that programs read: in the JSON alone, where facts are text.
  void count(std::string name, u64 value) { counts_.emplace_back(std::move(name), value); }
  void add(std::string heading, table rows) {
    tables_.emplace_back(std::move(heading), std::move(rows));
  }
  void note(std::string text) { notes_.push_back(std::move(text)); }
  /// Something computed was wrong: the program says so and exits with 1.
  void wrong(std::string what) { wrong_.push_back(std::move(what)); }

  /// Prints, and writes the Markdown file. Returns the exit status.
  int publish() const;

private:
  std::string text() const;
  std::string json() const;
  std::string markdown() const;

  std::string title_;
  common_options options_;
  facts facts_;
  std::vector<std::pair<std::string, u64>> counts_;
  std::vector<std::pair<std::string, table>> tables_;
  std::vector<std::string> notes_;
  std::vector<std::string> wrong_;
};

} // namespace cusync::cli
