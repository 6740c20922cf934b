// SPDX-License-Identifier: MIT
#pragma once

#include <bit>         // bit_cast
#include <cstdint>     // uint16_t, uint32_t
#include <type_traits> // is_constant_evaluated

#if defined(__F16C__)
#include <immintrin.h> // _cvtss_sh, _cvtsh_ss
#endif

namespace cusync {

/// Storage of an IEEE 754 binary16 number; the bits of CUDA's `__half`. Arithmetic is done in float.
struct half {
  std::uint16_t bits = 0;

  half() = default;
  /// Rounds to nearest, ties to even: too large becomes infinity, NaN stays a NaN.
  constexpr explicit half(float value) : bits(rounded(value)) {}
  /// Exact.
  constexpr explicit operator float() const { return widened(bits); }

  static constexpr half from_bits(std::uint16_t bits) {
    half result{};
    result.bits = bits;
    return result;
  }

private:
  static constexpr std::uint16_t rounded(float value) {
#if defined(__F16C__)
    if (!std::is_constant_evaluated()) return _cvtss_sh(value, 0); // 0: to nearest even
#endif
    constexpr std::uint32_t infinity = 0x7f800000;    // 255 << 23
    constexpr std::uint32_t beyond_half = 143 << 23;  // 2^16: above every half, rounding included
    constexpr std::uint32_t least_normal = 113 << 23; // 2^-14
    constexpr std::uint32_t align = 126
                                    << 23; // 0.5: the ulp of a float here is that of a small half
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = all >> 16 & 0x8000;
    const std::uint32_t size = all & 0x7fffffff;
    std::uint32_t result = 0;
    if (size > infinity)
      result = 0x7e00 | (size >> 13 & 0x3ff); // quiet
    else if (size >= beyond_half)
      result = 0x7c00;
    else if (size < least_normal) // the addition rounds, in the mode of the host: to nearest even
      result =
          std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + std::bit_cast<float>(align)) -
          align;
    else // rebias, then round: a carry out of the fraction is the next exponent, or infinity
      result = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    return static_cast<std::uint16_t>(sign | result);
  }

  static constexpr float widened(std::uint16_t bits) {
#if defined(__F16C__)
    if (!std::is_constant_evaluated()) return _cvtsh_ss(bits);
#endif
    // As a float's exponent and fraction this is 2^112 too small, subnormal halves too: one exact
    // multiplication puts both right.
    const float size = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
    auto all = std::bit_cast<std::uint32_t>(size);
    if (size >= 65536.0f) all |= 0x7f800000; // the largest exponent: infinity or NaN
    return std::bit_cast<float>(all | (bits & 0x8000u) << 16);
  }
};

static_assert(sizeof(half) == 2);

} // namespace cusync
