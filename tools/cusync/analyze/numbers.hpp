// SPDX-License-Identifier: MIT
#pragma once

#include "trace.hpp"

#include <optional>    // optional
#include <string_view> // string_view

namespace cusync::analyze {

/// 46 days on either side of a century from 1970, in nanoseconds: sums of two still fit in 64 bits.
inline constexpr i64 most_ns = 4'000'000'000'000'000'000;

/// "1695835573023613.125" microseconds as nanoseconds, exactly: a double has no digits left for the
/// fraction of a time since 1970. None where the text is no number, or too large.
std::optional<i64> nanoseconds_of(std::string_view microseconds);

/// None where the text is no number, or not within [least, most].
std::optional<i64> whole_number_of(std::string_view text, i64 least, i64 most);

/// Extents as a kernel can be launched with; zero where they are not.
extent3 grid_of(i64 x, i64 y, i64 z);
extent3 block_of(i64 x, i64 y, i64 z);
extent3 cluster_of(i64 x, i64 y, i64 z);

} // namespace cusync::analyze
