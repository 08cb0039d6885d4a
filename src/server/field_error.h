// An error in one field of a request, with OpenAI's code.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "heed/error.h"

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

}  // namespace heed::server
