// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp>

namespace cusync::test {

inline constexpr operand<0> A;
inline constexpr operand<1> R; ///< A residual, added at the end.

} // namespace cusync::test
