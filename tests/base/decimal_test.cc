#include "base/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace heed {
namespace {

TEST(Decimal, OfAFloatIsTheOneThatPeopleWrite) {
  EXPECT_EQ(shortest_decimal(0.1F), 0.1);
  EXPECT_EQ(shortest_decimal(1e-5F), 1e-5);
  EXPECT_EQ(shortest_decimal(16777216.0F), 16777216.0);
  EXPECT_EQ(static_cast<float>(shortest_decimal(std::nextafter(0.1F, 1.0F))),
            std::nextafter(0.1F, 1.0F));
  EXPECT_TRUE(std::isnan(shortest_decimal(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Decimal, IsRoundedToSignificantDigits) {
  EXPECT_EQ(rounded_decimal(0.1F, 7), 0.1);
  EXPECT_EQ(rounded_decimal(9.9999997e-6F, 7), 1e-5);
  EXPECT_EQ(rounded_decimal(1234.5678F, 3), 1230.0);
  EXPECT_EQ(rounded_decimal(-0.02F, 7), -0.02);
}

}  // namespace
}  // namespace heed
