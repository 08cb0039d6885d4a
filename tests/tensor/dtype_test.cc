// Sixteen-bit floats: all 65536 patterns of both kinds, and the rounding towards them.
#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "base/random.h"

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

template <class ToFloat, class FromFloat>
void expect_every_pattern_returns(ToFloat to_float, FromFloat from_float, std::uint32_t quiet_bit) {
  for (std::uint32_t pattern = 0; pattern < patterns; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float value = to_float(bits);
    const std::uint16_t back = from_float(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(to_float(back))) << pattern;
      ASSERT_NE(back & quiet_bit, 0U) << pattern;
      ASSERT_EQ(back >> 15, pattern >> 15) << pattern;
    } else {
      ASSERT_EQ(back, bits) << pattern;
    }
  }
}

TEST(Float16, EveryPatternReturns) { expect_every_pattern_returns(f16_to_f32, f32_to_f16, 0x200U); }

TEST(BFloat16, EveryPatternReturns) {
  expect_every_pattern_returns(bf16_to_f32, f32_to_bf16, 0x40U);
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
template <class ToFloat, class FromFloat>
void expect_nearest_even(std::uint16_t infinity, ToFloat to_float, FromFloat from_float) {
  for (std::uint16_t bits = 0; bits + 1 < infinity; ++bits) {
    const float low = to_float(bits);
    const float high = to_float(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    const auto above = static_cast<std::uint16_t>(bits + 1);
    const std::uint16_t even = bits % 2 == 0 ? bits : above;
    ASSERT_EQ(from_float(middle), even) << bits;
    ASSERT_EQ(from_float(-middle), even | 0x8000U) << bits;
    ASSERT_EQ(from_float(std::nextafter(middle, low)), bits) << bits;
    ASSERT_EQ(from_float(std::nextafter(middle, high)), above) << bits;
  }
}

TEST(Float16, RoundsToNearestEven) { expect_nearest_even(0x7C00, f16_to_f32, f32_to_f16); }

TEST(BFloat16, RoundsToNearestEven) { expect_nearest_even(0x7F80, bf16_to_f32, f32_to_bf16); }

TEST(Float16, OverflowsToInfinity) {
  EXPECT_EQ(f32_to_f16(65504.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65519.996F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-1e30F), 0xFC00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(BFloat16, OverflowsToInfinity) {
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f32_to_bf16(-std::numeric_limits<float>::infinity()), 0xFF80);
}

#ifdef __FLT16_MAX__
TEST(Float16, AgreesWithTheCompiler) {
  RandomStream random(17, 0);
  for (int i = 0; i < 2'000'000; ++i) {
    const float value = std::bit_cast<float>(random.next_u32());
    if (std::isnan(value)) continue;
    ASSERT_EQ(f32_to_f16(value), std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)))
        << value;
  }
}
#endif

}  // namespace
}  // namespace heed
