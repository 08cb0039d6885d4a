// The fields of a request, read with their types, and what is said of those that cannot be.
#include "server/fields.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace heed::server {
namespace {

using heed::testing::expect_error;

void expect_refusal(const std::function<void()>& read, const std::string& message) {
  expect_error(ErrorCode::invalid_argument, read, message);
}

TEST(Fields, AbsentAndNullAreTheSame) {
  const Json object{{"none", nullptr}};
  const Fields fields(object);
  for (const char* name : {"none", "other"}) {
    EXPECT_FALSE(fields.has(name));
    EXPECT_EQ(fields.integer(name), std::nullopt);
    EXPECT_EQ(fields.number(name), std::nullopt);
    EXPECT_EQ(fields.boolean(name), std::nullopt);
    EXPECT_EQ(fields.string(name), std::nullopt);
    EXPECT_TRUE(fields.strings(name, 3).empty());
  }
  expect_refusal([&] { fields.required_string("none"); }, "the request has no \"none\"");
  expect_refusal([&] { fields.required_object("other"); }, "the request has no \"other\"");
}

TEST(Fields, AreReadWithTheirTypes) {
  const Json object{{"count", -3},      {"share", 0.5},          {"on", true},
                    {"name", "mole"},   {"names", {"a", "b"}},   {"vector", {1, 2.5}},
                    {"tokens", {0, 9}}, {"inner", {{"deep", 1}}}};
  const Fields fields(object);
  EXPECT_EQ(fields.integer("count"), -3);
  EXPECT_EQ(fields.number("share"), 0.5);
  EXPECT_EQ(fields.number("count"), -3);
  EXPECT_EQ(fields.boolean("on"), true);
  EXPECT_EQ(fields.string("name"), "mole");
  EXPECT_EQ(fields.strings("name", 3), std::vector<std::string>{"mole"});
  EXPECT_EQ(fields.strings("names", 3), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fields.required_floats("vector"), (std::vector<float>{1, 2.5}));
  EXPECT_EQ(fields.required_token_ids("tokens", 10), (std::vector<std::int32_t>{0, 9}));
  EXPECT_EQ(fields.required_list("names").size(), 2U);
  EXPECT_EQ(fields.required_object("inner").required_integer("deep"), 1);
}

TEST(Fields, SayWhatWasExpectedAndWhatCame) {
  const Json object{{"count", 7},           {"large", 9223372036854775808U},
                    {"text", "seven"},      {"tokens", {1, 10}},
                    {"vector", {1, 1e300}}, {"inner", {{"deep", "x"}}}};
  const Fields fields(object);
  expect_refusal([&] { fields.integer("count", 0, 5); },
                 "count must be a whole number from 0 to 5, not 7");
  expect_refusal([&] { fields.integer("large"); },
                 "large must be a whole number, not 9223372036854775808");
  expect_refusal([&] { fields.number("text"); }, "text must be a number, not \"seven\"");
  expect_refusal([&] { fields.boolean("count"); }, "count must be true or false, not 7");
  expect_refusal([&] { fields.string("count"); }, "count must be a string, not 7");
  expect_refusal([&] { fields.required_list("count"); }, "count must be a list, not 7");
  expect_refusal([&] { fields.required_floats("vector"); },
                 "vector must hold finite 32-bit numbers");
  expect_refusal([&] { fields.required_token_ids("tokens", 10); },
                 "tokens holds 10, which is not a token id from 0 to 9");
  expect_refusal([&] { fields.required_object("text"); }, "text must be a JSON object");
  expect_refusal([&] { fields.required_object("inner").integer("deep"); },
                 "deep of inner must be a whole number, not \"x\"");
}

TEST(Fields, AnObjectIsNamedWhereItIsNotTheRequest) {
  const Json object{{"factor", "x"}};
  const Fields fields(object, "intervention 2");
  expect_refusal([&] { fields.number("factor"); }, "factor of intervention 2 must be a number");
  expect_refusal([&] { fields.required_string("point"); }, "intervention 2 has no \"point\"");
  expect_refusal([] { Fields(Json::array(), "intervention 3"); },
                 "intervention 3 must be a JSON object, not an array");
}

TEST(Fields, RefusalsCarryThePathAndTheCode) {
  const Json object{{"count", "x"}, {"inner", {{"deep", 9}}}, {"ids", {5}}};
  const Fields fields(object);
  const auto expect_field = [](const std::function<void()>& read, const std::string& field,
                               const std::string& code) {
    try {
      read();
      ADD_FAILURE() << field << " was not refused";
    } catch (const FieldError& error) {
      EXPECT_EQ(error.field(), field);
      EXPECT_EQ(error.field_code(), code);
    }
  };
  expect_field([&] { fields.integer("count"); }, "count", "invalid_type");
  expect_field([&] { fields.required_string("name"); }, "name", "missing_required_parameter");
  expect_field([&] { fields.required_object("inner").integer("deep", 0, 5); }, "inner.deep",
               "invalid_value");
  expect_field([&] { fields.required_token_ids("ids", 5); }, "ids", "invalid_value");
  expect_field([&] { fields.expect_only({"count", "inner"}); }, "ids", "unknown_parameter");
  expect_field([&] { Fields(object, "message 1", "messages[1]").string("ids"); }, "messages[1].ids",
               "invalid_type");
}

TEST(Fields, KnowWhichWereNeverLookedFor) {
  const Json object{{"a", 1}, {"b", nullptr}, {"c", 2}};
  const Fields fields(object);
  EXPECT_EQ(fields.unread(), (std::vector<std::string>{"a", "c"})  // null is absent
  );
  fields.integer("a");
  fields.has("b");
  EXPECT_EQ(fields.unread(), std::vector<std::string>{"c"});
}

TEST(Fields, OthersAreRefusedWithTheNearest) {
  const Json object{{"tex", "a"}};
  expect_refusal(
      [&] {
        Fields(object).expect_only({"tokens", "text"});
      },
      "the request has an unknown \"tex\"; did you mean \"text\"?");
  Fields(object).expect_only({"tex"});
}

}  // namespace
}  // namespace heed::server
