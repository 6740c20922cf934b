// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // operand

namespace cusync::cli {

inline constexpr operand<0> previous{}; ///< What the stage before wrote.

} // namespace cusync::cli
