#include "base/numbers.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace heed {
namespace {

using testing::expect_error;

TEST(Quantity, IsInItsBaseUnit) {
  EXPECT_DOUBLE_EQ(parse_quantity("10Gbit", Quantity::rate), 1.25e9);
  EXPECT_DOUBLE_EQ(parse_quantity("100Mbit/s", Quantity::rate), 1.25e7);
  EXPECT_DOUBLE_EQ(parse_quantity("1.5GB", Quantity::rate), 1.5e9);
  EXPECT_DOUBLE_EQ(parse_quantity("2", Quantity::rate), 2);
  EXPECT_DOUBLE_EQ(parse_quantity("64GiB", Quantity::bytes), 64.0 * 1024 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(parse_quantity("512 GB", Quantity::bytes), 512e9);
  EXPECT_DOUBLE_EQ(parse_quantity("50us", Quantity::time), 5e-5);
  EXPECT_DOUBLE_EQ(parse_quantity("50µs", Quantity::time), 5e-5);
  EXPECT_DOUBLE_EQ(parse_quantity("1ms", Quantity::time), 1e-3);
  EXPECT_DOUBLE_EQ(parse_quantity("0", Quantity::time), 0);
  EXPECT_DOUBLE_EQ(parse_quantity("300B", Quantity::count), 3e11);
  EXPECT_DOUBLE_EQ(parse_quantity("1.5T", Quantity::count), 1.5e12);
  EXPECT_DOUBLE_EQ(parse_quantity("0.5", Quantity::number), 0.5);
}

TEST(Quantity, RefusesAnythingElse) {
  for (const char* text : {"", " ", "x", "10 Gbit", "10Gbits", "-1", "inf", "nan", "1e999", "1G1",
                           "Gbit", "1GiB", "10Gbit/h", "0x10"}) {
    expect_error(
        ErrorCode::invalid_argument, [&] { parse_quantity(text, Quantity::rate); }, "10Gbit",
        std::string("not '") + text + "'");
    EXPECT_NE(quantity_problem(text, Quantity::rate), "") << text;
  }
  expect_error(
      ErrorCode::invalid_argument, [] { parse_quantity("5GB", Quantity::number); }, "a number");
  EXPECT_EQ(quantity_problem("64GiB", Quantity::bytes), "");
}

}  // namespace
}  // namespace heed
