// SPDX-License-Identifier: MIT
#include "command.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>  // fputs
#include <utility> // move

namespace cusync::cli {
namespace {

/// An action's result, which CLI11's callbacks have no place for.
int status = 0;

} // namespace

command& command::argument(const char* name, std::string& value, const char* help) {
  app_->add_option(name, value, help)->required();
  return *this;
}

command& command::arguments(const char* name, std::vector<std::string>& values, const char* help) {
  app_->add_option(name, values, help);
  return *this;
}

command& command::option(const char* name, std::string& value, const char* help) {
  CLI::Option* made = app_->add_option(name, value, help);
  if (!value.empty()) made->capture_default_str();
  return *this;
}

command& command::option(const char* name, u64& value, const char* help) {
  app_->add_option(name, value, help)->capture_default_str();
  return *this;
}

command& command::flag(const char* name, bool& value, const char* help) {
  app_->add_flag(name, value, help);
  return *this;
}

command& command::examples(const char* text) {
  app_->footer(text);
  return *this;
}

void command::runs(std::function<int()> action) {
  app_->callback([action = std::move(action)] { status = action(); });
}

int run_command_line(int argc, char** argv, const std::vector<subcommand>& workloads,
                     const std::vector<subcommand>& tools, const std::string& version,
                     const char* examples) {
  CLI::App app("Dependent GPU kernels that overlap tile by tile");
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  app.footer(examples);
  CLI::App* run = app.add_subcommand("run", "Run a workload against its baseline");
  run->require_subcommand(1);
  for (const subcommand& each : workloads)
    each.declare(command(*run->add_subcommand(each.name, each.help)));
  for (const subcommand& each : tools)
    each.declare(command(*app.add_subcommand(each.name, each.help)));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) { // help, version
    return app.exit(asked);
  } catch (const CLI::ParseError& refusal) {
    std::fputs(("cusync: " + std::string(refusal.what()) + "; see --help\n").c_str(), stderr);
    return 2;
  }
  return status;
}

} // namespace cusync::cli
