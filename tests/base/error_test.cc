#include "base/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/expect_error.h"

namespace heed {
namespace {

using testing::expect_error;

TEST(Error, CodesHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    names.insert(error_code_name(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::internal) + 1);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_TRUE(names.contains("corrupt_data"));
}

TEST(Error, RequirePassesOrThrowsTheMessage) {
  require(true, ErrorCode::invalid_argument, "never seen {}", 1);
  expect_error(
      ErrorCode::not_found, [] { require(false, ErrorCode::not_found, "{} is not {}", 1, "2"); },
      "1 is not 2");
  expect_error(
      ErrorCode::conflict, [] { fail(ErrorCode::conflict, "100 % {{}}"); }, "100 % {}");
}

TEST(Error, CheckNamesTheBrokenInvariant) {
  check(true, "never seen");
  expect_error(
      ErrorCode::internal, [] { check(false, "one is two"); }, "one is two", "line");
}

}  // namespace
}  // namespace heed
