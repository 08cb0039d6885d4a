// The fields of a JSON object, each read with its type and its bounds. Absent and null are the
// same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace heed::server {

// All throw Error{invalid_argument} naming the field, what it is and what was expected.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  // The field, or null when it is absent or null.
  const Json* find(const char* name) const;

  std::optional<std::int64_t> integer(const char* name, std::int64_t least,
                                      std::int64_t most) const;
  std::optional<double> number(const char* name, double least, double most) const;
  std::optional<bool> boolean(const char* name) const;
  std::optional<std::string> string(const char* name) const;
  std::vector<std::string> strings(const char* name, std::size_t most) const;  // or one of them

 private:
  const Json& object_;
};

// What a value looks like in a message: its beginning.
std::string shown(const Json& value);

// An array of token ids, each from 0 to `vocabulary` - 1.
std::vector<std::int32_t> token_ids(const Json& array, std::int64_t vocabulary, const char* name);

}  // namespace heed::server
