#include "base/numbers.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace heed {
namespace {

using Indices = std::vector<std::int64_t>;

TEST(IndexList, ReadsNumbersAndRanges) {
  EXPECT_EQ(parse_indices(""), Indices{});
  EXPECT_EQ(parse_indices("0-3,7,-1"), (Indices{0, 1, 2, 3, 7, -1}));
  EXPECT_EQ(parse_indices("-3--1"), (Indices{-3, -2, -1}));
}

TEST(IndexList, RefusesTheRest) {
  for (const char* text :
       {"a", "3-1", "1,,2", ",1", "1,", "1-2-3", ",,", "1 2", "99999999999999999999",
        "9223372036854775807", "-9223372036854775808-9223372036854775807"}) {
    EXPECT_THROW(parse_indices(text), Error) << text;
  }
  EXPECT_THROW(parse_indices("0-1048576"), Error);
  EXPECT_THROW(parse_indices("0-1048575,5"), Error);
  EXPECT_EQ(parse_indices("0-1048575").size(), 1048576U);
}

TEST(SplitList, RefusesEmptyItems) {
  EXPECT_EQ(split_list("a, b"), (std::vector<std::string_view>{"a", "b"}));
  for (const char* text : {"", ",", "a,", ",a", "a,,b", "a, ,b"}) {
    EXPECT_THROW(split_list(text), Error) << text;
  }
}

TEST(Sizes, HaveUnits) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("500 MB"), 500'000'000);
  EXPECT_EQ(parse_bytes("1GiB"), std::int64_t{1} << 30);
  EXPECT_EQ(parse_bytes("2TB"), 2'000'000'000'000);
  for (const char* text : {"", "-1", "1 XB", "nan", "1e300", "8388608TiB"})
    EXPECT_THROW(parse_bytes(text), Error);
}

}  // namespace
}  // namespace heed
