// SPDX-License-Identifier: MIT
#pragma once

#include "byte_source.hpp"
#include "trace.hpp"

namespace cusync::analyze {

/// Reads a Chrome trace as the PyTorch profiler (Kineto) writes it. The text streams through a buffer
/// of a few megabytes. Throws `invalid_argument` where it is cut off, or no such trace.
trace read_kineto(byte_source& text);

} // namespace cusync::analyze
