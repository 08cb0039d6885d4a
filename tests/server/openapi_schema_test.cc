#include "server/openapi_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace heed::server::testing {
namespace {

const std::set<std::string>& known_keywords() {
  static const std::set<std::string> keywords{
      "type",    "nullable", "enum",     "properties", "required", "additionalProperties",
      "items",   "minItems", "maxItems", "oneOf",      "$ref",     "description",
      "default", "minimum",  "maximum"};
  return keywords;
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

std::string beginning(const Json& value) { return value.dump().substr(0, 80); }

}  // namespace

const Json& SchemaChecker::resolved(const Json& schema) const {
  if (!schema.contains("$ref")) return schema;
  return document_.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1)));
}

std::vector<std::string> SchemaChecker::faults(const Json& value, const Json& schema) const {
  std::vector<std::string> found;
  check(value, schema, "", found);
  return found;
}

void SchemaChecker::check(const Json& value, const Json& reference, const std::string& place,
                          std::vector<std::string>& faults) const {
  const Json& schema = resolved(reference);
  for (const auto& [keyword, rule] : schema.items()) {
    if (!known_keywords().contains(keyword)) faults.push_back(place + ": unknown rule " + keyword);
  }
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end()) {
    faults.push_back(place + ": " + beginning(value) + " is none of " + schema["enum"].dump());
  }
  if (value.is_number() &&
      (value < schema.value("minimum", value) || value > schema.value("maximum", value))) {
    faults.push_back(place + ": " + beginning(value) + " is out of range");
  }
  if (schema.contains("oneOf")) {
    const auto fits = std::ranges::count_if(
        schema["oneOf"], [&](const Json& choice) { return this->faults(value, choice).empty(); });
    if (fits == 1) return;
    faults.push_back(place + ": fits " + std::to_string(fits) + " of oneOf: " + beginning(value));
    return;
  }
  if (value.is_null() && schema.value("nullable", false)) return;
  const std::string type = schema.value("type", "");
  if (!has_type(value, type)) {
    faults.push_back(place + ": " + beginning(value) + " is no " + type);
    return;
  }
  if (type == "object") check_object(value, schema, place, faults);
  if (type == "array") check_list(value, schema, place, faults);
}

void SchemaChecker::check_object(const Json& value, const Json& schema, const std::string& place,
                                 std::vector<std::string>& faults) const {
  for (const Json& name : schema.value("required", Json::array())) {
    if (!value.contains(name)) faults.push_back(place + " has no " + name.get<std::string>());
  }
  const Json properties = schema.value("properties", Json::object());
  const Json others = schema.value("additionalProperties", Json(false));
  for (const auto& [name, field] : value.items()) {
    const std::string inner = place + "." + name;
    if (properties.contains(name)) {
      check(field, properties[name], inner, faults);
    } else if (others.is_object()) {
      check(field, others, inner, faults);
    } else if (!others.get<bool>()) {
      faults.push_back(inner + " is not in the document");
    }
  }
}

void SchemaChecker::check_list(const Json& value, const Json& schema, const std::string& place,
                               std::vector<std::string>& faults) const {
  if (value.size() < schema.value("minItems", std::size_t{0}) ||
      value.size() > schema.value("maxItems", value.size())) {
    faults.push_back(place + ": has " + std::to_string(value.size()) + " items");
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    check(value[i], schema["items"], place + "[" + std::to_string(i) + "]", faults);
  }
}

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SchemaChecker, FindsWhatIsNotAsItShouldBe) {
  const Json document = Json::parse(R"({
    "Pair": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
    "Row": {"type": "object", "required": ["name"], "properties": {
      "name": {"type": "string", "enum": ["a", "b"]},
      "score": {"type": "number", "nullable": true},
      "pair": {"$ref": "#/Pair"},
      "either": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "boolean"}}]},
      "open": {"type": "object", "additionalProperties": {"type": "number"}}}}})");
  const SchemaChecker checker(document);
  const auto faults = [&](const char* value) {
    return checker.faults(Json::parse(value), document["Row"]);
  };
  EXPECT_THAT(faults(R"({"name":"a","score":null,"pair":[1,2],"either":[true],"open":{"x":1}})"),
              IsEmpty());
  EXPECT_THAT(faults(R"({"name":"a","score":1,"either":"text"})"), IsEmpty());
  EXPECT_THAT(faults("[]"), ElementsAre(HasSubstr("is no object")));
  EXPECT_THAT(faults("{}"), ElementsAre(HasSubstr("has no name")));
  EXPECT_THAT(faults(R"({"name":"c"})"), ElementsAre(HasSubstr("is none of")));
  EXPECT_THAT(faults(R"({"name":null})"), ::testing::Not(IsEmpty()));
  EXPECT_THAT(faults(R"({"name":"a","score":"1"})"), ElementsAre(HasSubstr(".score")));
  EXPECT_THAT(faults(R"({"name":"a","pair":[1,2.5]})"), ElementsAre(HasSubstr(".pair[1]")));
  EXPECT_THAT(faults(R"({"name":"a","pair":[1]})"), ElementsAre(HasSubstr("has 1 items")));
  EXPECT_THAT(faults(R"({"name":"a","either":5})"), ElementsAre(HasSubstr("fits 0 of oneOf")));
  EXPECT_THAT(faults(R"({"name":"a","open":{"x":"y"}})"), ElementsAre(HasSubstr(".open.x")));
  EXPECT_THAT(faults(R"({"name":"a","more":1})"), ElementsAre(HasSubstr("not in the document")));
  EXPECT_THAT(checker.faults(1, {{"type", "integer"}, {"multipleOf", 2}}),
              ElementsAre(HasSubstr("unknown rule multipleOf")));
}

}  // namespace
}  // namespace heed::server::testing
