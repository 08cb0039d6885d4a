// Reads values of a JSON document with their expected type. Every function but the first throws
// Error{code} "<label> must be …, not <value>" for a value of another type or out of bounds.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/json.h"
#include "heed/error.h"

namespace heed {

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
