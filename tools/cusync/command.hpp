// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // u64

#include <functional> // function
#include <string>     // string
#include <vector>     // vector

namespace CLI {
class App;
}

namespace cusync::cli {

/// A subcommand's options: a thin cover over CLI11, which takes as long to compile as all else here.
/// What options are stored in outlives the parsing.
class command {
public:
  explicit command(CLI::App& app) : app_(&app) {}

  /// A value that must be given, by its place: `cusync check FILE`.
  command& argument(const char* name, std::string& value, const char* help);
  /// Any number of values, none included.
  command& arguments(const char* name, std::vector<std::string>& values, const char* help);
  command& option(const char* name, std::string& value, const char* help);
  command& option(const char* name, u64& value, const char* help);
  command& flag(const char* name, bool& value, const char* help);
  command& examples(const char* text);
  /// What to do; returns the exit status.
  void runs(std::function<int()> action);

private:
  CLI::App* app_;
};

/// A subcommand of `cusync`, or of `cusync run`: a workload.
struct subcommand {
  const char* name;
  const char* help;
  std::function<void(command)> declare;
};

/// Parses the command line and does what it says. Returns the exit status; 2 where the command line is
/// wrong, which one line on stderr then says.
int run_command_line(int argc, char** argv, const std::vector<subcommand>& workloads,
                     const std::vector<subcommand>& tools, const std::string& version,
                     const char* examples);

} // namespace cusync::cli
