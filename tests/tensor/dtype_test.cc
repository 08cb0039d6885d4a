// Sixteen-bit floats: all 65536 patterns of both kinds, and rounding to bfloat16.
#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "base/bf16.h"

namespace heed {
namespace {

constexpr std::uint32_t patterns = 1U << 16;

TEST(DType, HasSizeAndName) {
  std::set<std::string_view> names;
  for (int type = 0; type <= static_cast<int>(DType::boolean); ++type) {
    const DType dtype = static_cast<DType>(type);
    names.insert(dtype_name(dtype));
    EXPECT_TRUE(std::has_single_bit(dtype_size(dtype)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(DType::boolean) + 1);
  EXPECT_EQ(dtype_size(DType::bf16), 2U);
  EXPECT_EQ(dtype_size(DType::boolean), 1U);
  EXPECT_EQ(dtype_name(DType::bf16), "BF16");
}

TEST(BFloat16, EveryPatternReturns) {
  constexpr std::uint32_t quiet_bit = 0x40U;
  for (std::uint32_t pattern = 0; pattern < patterns; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float value = bf16_to_f32(bits);
    const std::uint16_t back = f32_to_bf16(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bf16_to_f32(back))) << pattern;
      ASSERT_NE(back & quiet_bit, 0U) << pattern;
      ASSERT_EQ(back >> 15, pattern >> 15) << pattern;
    } else {
      ASSERT_EQ(back, bits) << pattern;
    }
  }
}

// The value of a finite pattern by the definition of the format.
double defined_value(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = bits & ((1U << fraction_bits) - 1U);
  const double significand =
      exponent == 0 ? fraction : fraction + static_cast<double>(1 << fraction_bits);
  const double magnitude =
      std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - fraction_bits);
  return (bits >> 15) != 0 ? -magnitude : magnitude;
}

TEST(Float16, HasTheDefinedValues) {
  for (std::uint32_t bits = 0; bits < patterns; ++bits) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(bits));
    if ((bits & 0x7FFFU) < 0x7C00U) {
      ASSERT_EQ(value, defined_value(bits, 5, 10)) << bits;
    } else {
      ASSERT_EQ(std::isinf(value), (bits & 0x3FFU) == 0) << bits;
    }
    ASSERT_EQ(std::signbit(value), bits >= 0x8000U) << bits;
  }
}

TEST(BFloat16, HasTheDefinedValues) {
  for (std::uint32_t bits = 0; bits < patterns; ++bits) {
    if ((bits & 0x7FFFU) >= 0x7F80U) continue;
    ASSERT_EQ(bf16_to_f32(static_cast<std::uint16_t>(bits)), defined_value(bits, 8, 7)) << bits;
  }
}

// Between two neighbours: the middle goes to the even one, anything beside it to the nearer.
TEST(BFloat16, RoundsToNearestEven) {
  constexpr std::uint16_t infinity = 0x7F80;
  for (std::uint16_t bits = 0; bits + 1 < infinity; ++bits) {
    const float low = bf16_to_f32(bits);
    const float high = bf16_to_f32(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    const auto above = static_cast<std::uint16_t>(bits + 1);
    const std::uint16_t even = bits % 2 == 0 ? bits : above;
    ASSERT_EQ(f32_to_bf16(middle), even) << bits;
    ASSERT_EQ(f32_to_bf16(-middle), even | 0x8000U) << bits;
    ASSERT_EQ(f32_to_bf16(std::nextafter(middle, low)), bits) << bits;
    ASSERT_EQ(f32_to_bf16(std::nextafter(middle, high)), above) << bits;
  }
}

TEST(BFloat16, OverflowsToInfinity) {
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f32_to_bf16(-std::numeric_limits<float>::infinity()), 0xFF80);
}

}  // namespace
}  // namespace heed
