// SPDX-License-Identifier: MIT
#pragma once

#include "command.hpp"

namespace cusync::cli {

// The subcommands of `cusync run`.

workload mlp_workload();
workload synthetic_workload();
workload handover_workload();
workload hooks_workload();

} // namespace cusync::cli
