// The fields of a JSON object, each read with its type and its bounds; errors name the field, with
// OpenAI's code. Absent and null are the same. What heed does not use is refused, or ignored with a
// warning.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "heed/error.h"
#include "server/exchange.h"

namespace heed::server {

// OpenAI's error codes for fields.
namespace field_code {
inline constexpr const char* missing = "missing_required_parameter";
inline constexpr const char* invalid_type = "invalid_type";
inline constexpr const char* invalid_value = "invalid_value";
inline constexpr const char* unknown = "unknown_parameter";
inline constexpr const char* unsupported = "unsupported_parameter";
inline constexpr const char* context_length = "context_length_exceeded";
}  // namespace field_code

class FieldError : public Error {
 public:
  // `field` is the path to the field: "stop", "stream_options.include_usage", "messages[1].role".
  FieldError(std::string field, const char* code, const std::string& message)
      : Error(ErrorCode::invalid_argument, message), field_(std::move(field)), field_code_(code) {}

  const std::string& field() const noexcept { return field_; }
  const char* field_code() const noexcept { return field_code_; }

 private:
  std::string field_;
  const char* field_code_;
};

// Throws FieldError unless `condition` holds.
template <class... Args>
void require_field(bool condition, const std::string& field, const char* code,
                   fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) [[unlikely]] {
    throw FieldError(field, code, fmt::format(message, std::forward<Args>(args)...));
  }
}

// Every getter throws FieldError with the field, its value and what was expected.
class Fields {
 public:
  // Borrows the object. `what` is its name in messages unless it is the request itself:
  // "intervention 2"; `path` is its path in the request: "messages[1]". Throws FieldError for
  // anything but an object.
  explicit Fields(const Json& object, std::string what = "", std::string path = "");

  bool has(const char* name) const { return find(name) != nullptr; }

  // The field, or null when it is absent or null.
  const Json* find(const char* name) const;

  // Names of the object's fields that have not been read; not of those that are null.
  std::vector<std::string> unread() const;

  // The path of a field in the request, for FieldError.
  std::string path(const char* name) const;

  // Optional fields.
  std::optional<std::int64_t> integer(const char* name, std::int64_t min = lowest_integer,
                                      std::int64_t max = highest_integer) const;
  std::optional<double> number(const char* name, double min = -highest_number,
                               double max = highest_number) const;
  std::optional<bool> boolean(const char* name) const;
  std::optional<std::string> string(const char* name) const;
  std::vector<std::string> strings(const char* name, std::size_t max) const;  // or one of them

  // Required fields.
  std::int64_t required_integer(const char* name) const;
  float required_float(const char* name) const;
  std::string required_string(const char* name) const;
  const Json& required_list(const char* name) const;
  std::vector<float> required_floats(const char* name) const;  // a list of finite ones
  // A list of token ids, each from 0 to `vocabulary` - 1.
  std::vector<std::int32_t> required_token_ids(const char* name, std::int64_t vocabulary) const;
  Fields required_object(const char* name) const;

  // Throws FieldError for a field of another name, and suggests the nearest.
  void expect_only(const std::vector<std::string_view>& names) const;

 private:
  static constexpr std::int64_t lowest_integer = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t highest_integer = std::numeric_limits<std::int64_t>::max();
  static constexpr double highest_number = std::numeric_limits<double>::max();

  const Json& at(const char* name) const;
  std::string label(const char* name) const;  // as messages call the field
  const char* owner() const;                  // as messages call the object

  const Json& object_;
  std::string what_;
  std::string path_;
  mutable std::set<std::string, std::less<>> read_;
};

// The beginning of a value, for messages.
std::string shown(const Json& value);

// An array of token ids, each from 0 to `vocabulary` - 1. Throws FieldError at `path`; messages
// call the field `label`.
std::vector<std::int32_t> token_ids(const Json& array, std::int64_t vocabulary,
                                    const std::string& label, const std::string& path);

// Throws FieldError for a field that would change the meaning of the reply and is not supported,
// such as "tools", unless its value has no effect.
void refuse_unsupported(const Fields& fields);

// The same for one field of that kind.
void refuse_field(const Fields& fields, std::string_view name);

// "ignored fields: foo, bar": the fields that were not read, except those of OpenAI's that have no
// effect here, such as "user", and `others`. Printable ASCII of bounded length.
std::optional<std::string> ignored_fields(const Fields& fields,
                                          const std::vector<std::string>& others = {});

inline constexpr const char* warning_header = "X-Heed-Warning";

// Adds the header if there are ignored fields. Call it after all fields have been read.
void warn_of_ignored(const Fields& fields, Reply& reply,
                     const std::vector<std::string>& others = {});

}  // namespace heed::server
