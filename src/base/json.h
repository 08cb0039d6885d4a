// JSON with heed's errors: strict parsing into nlohmann::json, and fields of an expected type.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/json_fwd.h"
#include "heed/error.h"

namespace heed {

// Parses one document. Throws Error{corrupt_data} with `source` and the position of the error, also
// for nesting deeper than 64 levels and for duplicate keys.
Json parse_json(std::string_view text, std::string_view source);

// Converts a float to a JSON number that reads back as the same float, or to null if it is not
// finite, because JSON has no infinity.
OrderedJson json_number(float value);
OrderedJson json_number(double value);

// Appends the text of that number without building a document; for millions of numbers.
void append_json_number(std::string& text, float value);

// Serialises to one line. Generated text may contain invalid UTF-8, which JSON does not allow; it
// is replaced by U+FFFD.
std::string json_text(const OrderedJson& document);

template <typename T>
concept JsonDocument = std::same_as<T, Json> || std::same_as<T, OrderedJson>;

// What JSON is made of: a string, a vector, a map.
template <typename T>
concept JsonContent = std::is_class_v<T> && !JsonDocument<T>;

// The functions below read values of a JSON document with their expected type. All but the first
// throw Error{code} "<label> must be …, not <value>" for a value of another type or out of bounds.

// The name of a value in error messages, and the code of the error.
struct JsonLabel {
  std::string text;
  ErrorCode code = ErrorCode::corrupt_data;
};

// Returns the member `key` of an object, or null if it is absent or null or `object` is not an
// object.
const Json* find_json_member(const Json& object, const char* key);

std::int64_t json_integer(const Json& value, const JsonLabel& label,
                          std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                          std::int64_t most = std::numeric_limits<std::int64_t>::max());
double json_real(const Json& value, const JsonLabel& label,
                 double least = std::numeric_limits<double>::lowest(),
                 double most = std::numeric_limits<double>::max());
bool json_boolean(const Json& value, const JsonLabel& label);
const std::string& json_string(const Json& value, const JsonLabel& label);

// Formats a value for an error message: its first 40 bytes, or the type of an array or object.
std::string shown_json(const Json& value);

}  // namespace heed

// JSON stands on the left of a comparison with an object of another class. Compilers that know
// C++20's later rule on reversed operators (GCC 13, Clang 16) refuse it on the right, and here
// older ones do too.
namespace nlohmann {

template <heed::JsonContent Left, heed::JsonDocument Right>
bool operator==(const Left&, const Right&) = delete;

template <heed::JsonDocument Left, heed::JsonContent Right>
bool operator==(const Left& left, const Right& right) {
  return left == Left(right);
}

}  // namespace nlohmann
