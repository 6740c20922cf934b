// SPDX-License-Identifier: MIT
#pragma once

#include "analyze/analysis.hpp"
#include "analyze/html.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <utility> // move

namespace cusync::analyze {

/// Reads and goes all the way to the picture. A refusal is fine, anything else is a bug.
template <class Read> void analyse_or_refuse(const Read& read) {
  try {
    const analysis found = analyse(read());
    for (const kernel_pair& pair : found.pairs)
      if (!(pair.realistic >= 0 && pair.realistic <= pair.most)) __builtin_trap();
    html_of(found, "fuzz");
  } catch (const invalid_argument&) {
  }
}

} // namespace cusync::analyze
