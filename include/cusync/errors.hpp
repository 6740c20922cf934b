// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept> // runtime_error
#include <string>    // string, to_string

namespace cusync {

/// Base of everything that the library throws.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A chain, a shape, an option or a call that cannot run. Thrown before anything is launched; the
/// message names the value and the remedy.
struct invalid_argument : error {
  using error::error;
};

/// A wait that outlasted the spin limit. The output of that run is invalid; the chain can run again.
struct wait_timeout : error {
  using error::error;
};

/// A schedule in which no block can go on. Thrown by the virtual GPU only.
struct deadlock : error {
  using error::error;
};

} // namespace cusync
