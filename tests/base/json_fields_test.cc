#include "base/json.h"

#include <gmock/gmock.h>

#include "base/expect_error.h"

namespace heed {
namespace {

const JsonLabel label{"config.json: 'n_layer'", ErrorCode::corrupt_data};

TEST(JsonFields, FindsMembersThatAreNotNull) {
  const Json object = {{"a", 1}, {"b", nullptr}};
  ASSERT_NE(find_json_member(object, "a"), nullptr);
  EXPECT_EQ(*find_json_member(object, "a"), 1);
  EXPECT_EQ(find_json_member(object, "b"), nullptr);
  EXPECT_EQ(find_json_member(object, "c"), nullptr);
  EXPECT_EQ(find_json_member(Json::array({1}), "a"), nullptr);
}

TEST(JsonFields, ReadsEachType) {
  EXPECT_EQ(json_integer(-3, label), -3);
  EXPECT_EQ(json_integer(INT64_MAX, label), INT64_MAX);
  EXPECT_EQ(json_real(7, label), 7.0);
  EXPECT_EQ(json_real(0.5, label, 0, 1), 0.5);
  EXPECT_TRUE(json_boolean(true, label));
  EXPECT_EQ(json_string("text", label), "text");
}

TEST(JsonFields, ErrorsNameTheValueAndWhatWasExpected) {
  const auto refused = [](auto&& read, const std::string& rest) {
    testing::expect_error(ErrorCode::corrupt_data, read, "config.json: 'n_layer' must be " + rest);
  };
  refused([] { json_integer(1.5, label); }, "a whole number, not 1.5");
  refused([] { json_integer(UINT64_MAX, label); }, "a whole number, not 18446744073709551615");
  refused([] { json_integer(9, label, 0, 8); }, "a whole number from 0 to 8, not 9");
  refused([] { json_real("1", label); }, "a number, not \"1\"");
  refused([] { json_real(2, label, 0, 1); }, "a number from 0 to 1, not 2");
  refused([] { json_boolean(1, label); }, "true or false, not 1");
  refused([] { json_string(Json::array(), label); }, "a string, not an array");
}

TEST(JsonFields, ShowsTheFirstFortyBytesInWholeCharacters) {
  EXPECT_EQ(shown_json(std::string(38, 'x') + "é"), '"' + std::string(38, 'x') + "…");
  EXPECT_EQ(shown_json(Json::object()), "an object");
}

}  // namespace
}  // namespace heed
