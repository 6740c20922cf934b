// SPDX-License-Identifier: MIT
#pragma once

#include "command.hpp"

namespace cusync::cli {

// The subcommands of `cusync run`.

subcommand mlp_workload();
subcommand synthetic_workload();
subcommand handover_workload();
subcommand hooks_workload();

} // namespace cusync::cli
