// BodyFields of a request's JSON object, read with the type that they must have.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace heed::server {

class BodyFields {
 public:
  // Borrows the object; `what` names it in messages: "the request", "intervention 2".
  BodyFields(const Json& object, std::string what);

  bool has(const std::string& name) const;

  // Throw Error{invalid_argument} for a field that is missing without a fallback, or of another
  // type; null counts as missing.
  std::string text(const std::string& name) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  std::int64_t integer(const std::string& name) const;
  std::int64_t integer(const std::string& name, std::int64_t fallback) const;
  double number(const std::string& name) const;  // finite
  double number(const std::string& name, double fallback) const;
  bool truth(const std::string& name, bool fallback) const;
  std::vector<float> numbers(const std::string& name) const;  // finite
  std::vector<std::int32_t> token_ids(const std::string& name) const;
  const Json& array(const std::string& name) const;
  BodyFields object(const std::string& name) const;

  // Throws Error{invalid_argument} for a field of another name, with the nearest.
  void expect_only(std::initializer_list<std::string_view> names) const;

 private:
  const Json* find(const std::string& name) const;
  const Json& at(const std::string& name) const;
  [[noreturn]] void refuse(const std::string& name, const char* wanted, const Json& found) const;

  const Json& object_;
  std::string what_;
};

}  // namespace heed::server
