#include "base/json.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/expect_error.h"

namespace heed {
namespace {

using testing::expect_error;

void expect_refused(const std::string& text, const char* reason) {
  SCOPED_TRACE(text.substr(0, 40));
  expect_error(
      ErrorCode::corrupt_data, [&] { parse_json(text, "test.json"); }, "test.json", reason);
}

std::string nested(int levels, char open, char close) {
  return std::string(static_cast<std::size_t>(levels), open) +
         std::string(static_cast<std::size_t>(levels), close);
}

TEST(Json, ReadsDocuments) {
  EXPECT_EQ(parse_json("{\"a\":[1,{\"a\":2}],\"b\":null} ", "x")["a"][1]["a"], 2);
  EXPECT_EQ(parse_json("7", "x"), 7);
  // The same key in different objects is no duplicate.
  EXPECT_EQ(parse_json("[{\"a\":1},{\"a\":2}]", "x").size(), 2U);
}

template <typename Left, typename Right>
concept Comparable = requires(const Left& left, const Right& right) {
  left == right;
  left != right;
};

// Whatever the compiler, so that what one takes the next one takes too.
TEST(Json, StandsOnTheLeftOfComparisons) {
  EXPECT_FALSE((Comparable<std::string, Json>));
  EXPECT_FALSE((Comparable<std::string, OrderedJson>));
  EXPECT_FALSE((Comparable<std::vector<int>, Json>));
  EXPECT_TRUE((Comparable<Json, std::string>));
  EXPECT_TRUE((Comparable<Json, std::string_view>));
  EXPECT_TRUE((Comparable<OrderedJson, std::string>));
  EXPECT_TRUE((Comparable<Json, Json>));
  EXPECT_TRUE((Comparable<int, Json>));
  EXPECT_TRUE((Comparable<const char*, Json>));
  EXPECT_EQ(Json("a"), std::string("a"));
  EXPECT_NE(Json("a"), std::string("b"));
  EXPECT_EQ(OrderedJson({1, 2}), (std::vector{1, 2}));
}

TEST(Json, WhatIsCutShortOrFollowedByMoreIsRefused) {
  const std::string whole = R"({"a":[1,"é",true,null,{"b":-1.5e3}]})";
  parse_json(whole, "x");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    expect_refused(whole.substr(0, size), "not valid JSON");
  }
  for (const char* text : {"{} {}", "{,}", "[1,]", "{'a':1}", "// no\n{}", "NaN", "01", "\"\xff\"",
                           "\"\\ud800\"", "1e999"}) {
    expect_refused(text, "not valid JSON");
  }
}

TEST(Json, WhatIsWrongIsSaidWithoutTheParsersOwnNames) {
  expect_error(
      ErrorCode::corrupt_data, [&] { parse_json("[1", "test.json"); },
      "test.json: not valid JSON (parse error at line 1, column 3");
}

TEST(Json, WithANulByteIsRefused) {
  for (const std::string before : {"", "{}", "[1", "{\"a\":\"b"}) {
    expect_refused(before + std::string(1, '\0'), "is NUL");
    expect_refused(before + std::string(1, '\0') + "garbage", "is NUL");
  }
  EXPECT_EQ(parse_json(R"("\u0000")", "x").get<std::string>(), std::string(1, '\0'));
}

TEST(Json, DuplicateKeysAreRefused) {
  expect_refused(R"({"a":1,"b":2,"a":3})", "'a' appears twice");
  expect_refused(R"({"o":[{"a":1,"\u0061":3}]})", "'a' appears twice");
}

// Work that grows with the square of their number would take minutes.
TEST(Json, ManyContainersAreRead) {
  constexpr std::size_t count = 1'000'000;
  std::string text = "[[]";
  for (std::size_t i = 1; i < count; ++i) text += ",[]";
  EXPECT_EQ(parse_json(text + "]", "x").size(), count);
}

TEST(Json, ContainersAndMembersAreWhereTheyBelong) {
  const char* text = R"({"a":{"b":[{"c":1},[],{}],"d":"e"},"f":[[1,[2]],-3,4.5,true,null],"g":{}})";
  EXPECT_EQ(parse_json(text, "x"), Json::parse(text));
}

TEST(Json, DeepNestingIsRefused) {
  parse_json(nested(64, '[', ']'), "x");
  expect_refused(nested(65, '[', ']'), "deeper than 64");
  expect_refused(nested(1'000'000, '[', ']'), "deeper than 64");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  expect_refused(objects, "deeper than 64");
}

}  // namespace
}  // namespace heed
