// SPDX-License-Identifier: MIT
#include <cusync/kernels/half.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace cusync {
namespace {

constexpr std::uint16_t infinity = 0x7c00;
constexpr std::uint16_t largest = 0x7bff; // 65504

half of_bits(unsigned bits) { return half::from_bits(static_cast<std::uint16_t>(bits)); }
float value(unsigned bits) { return static_cast<float>(of_bits(bits)); }
bool is_nan(unsigned bits) { return (bits & 0x7fff) > infinity; }

/// What the standard says, read off the fields.
double by_definition(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = bits & 0x3ff;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

TEST(Half, WidensEveryValueExactly) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    if (is_nan(bits)) {
      EXPECT_TRUE(std::isnan(value(bits))) << bits;
    } else if ((bits & 0x7fff) == infinity) {
      EXPECT_TRUE(std::isinf(value(bits))) << bits;
    } else {
      ASSERT_EQ(double{value(bits)}, by_definition(bits)) << bits;
    }
    EXPECT_EQ(std::signbit(value(bits)), (bits & 0x8000) != 0) << bits;
  }
}

TEST(Half, SurvivesARoundTrip) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const unsigned back = half(value(bits)).bits;
    if (is_nan(bits))
      EXPECT_TRUE(is_nan(back)) << bits;
    else
      ASSERT_EQ(back, bits);
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (unsigned sign : {0u, 0x8000u})
    for (unsigned bits = 0; bits <= largest; ++bits) {
      const unsigned lower = sign | bits;
      const unsigned upper = sign | (bits + 1); // infinity behind the largest
      const double next = bits == largest ? 65536.0 : by_definition(bits + 1);
      const float middle = static_cast<float>((by_definition(bits) + next) / 2); // exact
      const float towards_zero = std::nextafter(middle, 0.0f);
      const float away = std::nextafter(middle, 1e9f);
      const float flip = sign == 0 ? 1.0f : -1.0f;
      ASSERT_EQ(half(flip * towards_zero).bits, lower) << bits;
      ASSERT_EQ(half(flip * middle).bits, bits % 2 == 0 ? lower : upper) << bits;
      ASSERT_EQ(half(flip * away).bits, upper) << bits;
    }
}

TEST(Half, BecomesInfiniteFrom65520On) {
  EXPECT_EQ(half(65519.996f).bits, largest);
  EXPECT_EQ(half(65520.0f).bits, infinity);
  EXPECT_EQ(half(1e30f).bits, infinity);
  EXPECT_EQ(half(-1e30f).bits, 0x8000 | infinity);
  EXPECT_EQ(half(std::numeric_limits<float>::infinity()).bits, infinity);
}

TEST(Half, KeepsTheSignOfWhatIsTooSmall) {
  EXPECT_EQ(half(1e-30f).bits, 0);
  EXPECT_EQ(half(-1e-30f).bits, 0x8000);
  EXPECT_EQ(half(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(half(0x1p-25f).bits, 0); // half of the least one: a tie, to even
  EXPECT_EQ(half(0x1.000002p-25f).bits, 1);
}

TEST(Half, StaysANanOfItsSign) {
  EXPECT_TRUE(is_nan(half(std::numeric_limits<float>::quiet_NaN()).bits));
  EXPECT_EQ(half(std::numeric_limits<float>::quiet_NaN()).bits & 0x8000, 0);
  EXPECT_NE(half(-std::numeric_limits<float>::quiet_NaN()).bits & 0x8000, 0);
}

TEST(Half, ConvertsAtCompileTime) {
  static_assert(half(1.0f).bits == 0x3c00);
  static_assert(half(-2.0f).bits == 0xc000);
  static_assert(static_cast<float>(half::from_bits(0x3555)) == 0.333251953125f);
}

} // namespace
} // namespace cusync
