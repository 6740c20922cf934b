// SPDX-License-Identifier: MIT
#include "numbers.hpp"

#include <charconv> // from_chars
#include <cmath>    // isfinite, llround
#include <limits>   // numeric_limits

namespace cusync::analyze {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Digits with at most one point, read up to the third decimal; none where there is anything else.
std::optional<i64> fixed_point(std::string_view text) {
  i64 value = 0;
  int decimals = -1; // none before the point
  for (const char c : text) {
    if (c == '.' && decimals < 0) {
      decimals = 0;
    } else if (!is_digit(c)) {
      return {};
    } else if (decimals < 3) {
      if (value > most_ns / 10) return {};
      value = value * 10 + (c - '0');
      if (decimals >= 0) ++decimals;
    }
  }
  for (int i = decimals < 0 ? 0 : decimals; i < 3; ++i) {
    if (value > most_ns / 10) return {};
    value *= 10;
  }
  return value;
}

std::optional<double> real_of(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return {};
  return value;
}

extent3 within(i64 x, i64 y, i64 z, i64 most_x, i64 most_y, i64 most_z) {
  const bool fits = x >= 1 && y >= 1 && z >= 1 && x <= most_x && y <= most_y && z <= most_z;
  return fits ? extent3{static_cast<u32>(x), static_cast<u32>(y), static_cast<u32>(z)} : extent3{};
}

} // namespace

std::optional<i64> nanoseconds_of(std::string_view microseconds) {
  const bool negative = microseconds.starts_with('-');
  const std::string_view digits = microseconds.substr(negative ? 1 : 0);
  if (digits.empty() || !is_digit(digits.front())) return {};
  std::optional<i64> ns = fixed_point(digits);
  if (!ns) { // 1.5e9, or too large
    const std::optional<double> real = real_of(digits);
    if (!real || *real > static_cast<double>(most_ns) / 1000) return {};
    ns = std::llround(*real * 1000);
  }
  if (*ns > most_ns) return {};
  return negative ? -*ns : *ns;
}

std::optional<i64> whole_number_of(std::string_view text, i64 least, i64 most) {
  i64 value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{}) return {};
  if (end != text.data() + text.size()) { // 168.0
    const std::optional<double> real = real_of(text);
    constexpr double exact = 9e15;
    if (!real || *real < -exact || *real > exact || *real != std::floor(*real)) return {};
    value = static_cast<i64>(*real);
  }
  if (value < least || value > most) return {};
  return value;
}

extent3 grid_of(i64 x, i64 y, i64 z) {
  return within(x, y, z, std::numeric_limits<std::int32_t>::max(), 65535, 65535);
}

extent3 block_of(i64 x, i64 y, i64 z) {
  constexpr i64 most_threads = 1024;
  const extent3 block = within(x, y, z, most_threads, most_threads, 64);
  return block.count() <= static_cast<u64>(most_threads) ? block : extent3{};
}

extent3 cluster_of(i64 x, i64 y, i64 z) {
  constexpr i64 most_blocks = 16;
  return within(x, y, z, most_blocks, most_blocks, most_blocks);
}

} // namespace cusync::analyze
