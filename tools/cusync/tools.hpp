// SPDX-License-Identifier: MIT
#pragma once

#include "command.hpp"

namespace cusync::cli {

// The subcommands of `cusync` beside `run`.

subcommand check_tool();
subcommand analyze_tool();
subcommand simulate_tool();
subcommand waves_tool();

} // namespace cusync::cli
