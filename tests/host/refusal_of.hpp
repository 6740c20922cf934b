// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/errors.hpp> // invalid_argument

#include <string> // string

namespace cusync {

/// The message with which `call` is refused, or "accepted".
template <class Call> std::string refusal_of(Call call) {
  try {
    call();
  } catch (const invalid_argument& refusal) {
    return refusal.what();
  }
  return "accepted";
}

} // namespace cusync
