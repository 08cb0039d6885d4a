#include "server/explorer/body_fields.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "microscope/point_names.h"

namespace heed::server {

BodyFields::BodyFields(const Json& object, std::string what)
    : object_(object), what_(std::move(what)) {
  require(object_.is_object(), ErrorCode::invalid_argument, "{} must be a JSON object, not {}",
          what_, object_.type_name());
}

const Json* BodyFields::find(const std::string& name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& BodyFields::at(const std::string& name) const {
  const Json* const found = find(name);
  require(found != nullptr, ErrorCode::invalid_argument, "{} has no \"{}\"", what_, name);
  return *found;
}

void BodyFields::refuse(const std::string& name, const char* wanted, const Json& found) const {
  fail(ErrorCode::invalid_argument, "\"{}\" of {} must be {}, not {}", name, what_, wanted,
       found.type_name());
}

bool BodyFields::has(const std::string& name) const { return find(name) != nullptr; }

std::string BodyFields::text(const std::string& name) const {
  const Json& value = at(name);
  if (!value.is_string()) refuse(name, "a string", value);
  return value.get<std::string>();
}

std::string BodyFields::text(const std::string& name, const std::string& fallback) const {
  return has(name) ? text(name) : fallback;
}

std::int64_t BodyFields::integer(const std::string& name) const {
  const Json& value = at(name);
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() &&
                      value.get<std::uint64_t>() >
                          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits) refuse(name, "a whole number", value);
  return value.get<std::int64_t>();
}

std::int64_t BodyFields::integer(const std::string& name, std::int64_t fallback) const {
  return has(name) ? integer(name) : fallback;
}

double BodyFields::number(const std::string& name) const {
  const Json& value = at(name);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    refuse(name, "a finite number", value);
  }
  return value.get<double>();
}

double BodyFields::number(const std::string& name, double fallback) const {
  return has(name) ? number(name) : fallback;
}

bool BodyFields::truth(const std::string& name, bool fallback) const {
  if (!has(name)) return fallback;
  const Json& value = at(name);
  if (!value.is_boolean()) refuse(name, "true or false", value);
  return value.get<bool>();
}

const Json& BodyFields::array(const std::string& name) const {
  const Json& value = at(name);
  if (!value.is_array()) refuse(name, "a list", value);
  return value;
}

BodyFields BodyFields::object(const std::string& name) const {
  const Json& value = at(name);
  if (!value.is_object()) refuse(name, "an object", value);
  return {value, "\"" + name + "\" of " + what_};
}

std::vector<float> BodyFields::numbers(const std::string& name) const {
  std::vector<float> values;
  for (const Json& value : array(name)) {
    if (!value.is_number()) refuse(name, "a list of finite numbers", value);
    values.push_back(value.get<float>());
    if (!std::isfinite(values.back())) refuse(name, "a list of finite numbers", value);
  }
  return values;
}

std::vector<std::int32_t> BodyFields::token_ids(const std::string& name) const {
  std::vector<std::int32_t> ids;
  for (const Json& value : array(name)) {
    if (!value.is_number_integer()) refuse(name, "a list of token ids", value);
    const bool fits = value.is_number_unsigned()
                          ? value.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max()
                          : value.get<std::int64_t>() >= 0;
    require(fits, ErrorCode::invalid_argument, "{} in \"{}\" of {} is no token id", value.dump(),
            name, what_);
    ids.push_back(value.get<std::int32_t>());
  }
  return ids;
}

void BodyFields::expect_only(std::initializer_list<std::string_view> names) const {
  for (const auto& [key, value] : object_.items()) {
    bool known = false;
    for (const std::string_view name : names) known = known || name == key;
    if (known) continue;
    const std::vector<std::string> candidates(names.begin(), names.end());
    const std::vector<std::string> nearest = nearest_names(key, candidates, 1);
    fail(ErrorCode::invalid_argument, "{} has an unknown \"{}\"; did you mean \"{}\"?", what_,
         key.substr(0, 40), nearest.empty() ? candidates.front() : nearest.front());
  }
}

}  // namespace heed::server
