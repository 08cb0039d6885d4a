#include "server/fields.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "microscope/traces/point_names.h"

namespace heed::server {

std::string shown(const Json& value) { return shown_json(value); }

Fields::Fields(const Json& object, std::string what, std::string path)
    : object_(object), what_(std::move(what)), path_(std::move(path)) {
  require_field(object_.is_object(), path_, field_code::invalid_type,
                "{} must be a JSON object, not {}", owner(), shown(object_));
}

const char* Fields::owner() const { return what_.empty() ? "the request" : what_.c_str(); }

std::string Fields::label(const char* name) const {
  return what_.empty() ? name : fmt::format("{} of {}", name, what_);
}

std::string Fields::path(const char* name) const {
  return path_.empty() ? name : fmt::format("{}.{}", path_, name);
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (!value.is_null() && !read_.contains(name)) names.push_back(name);
  }
  return names;
}

const Json* Fields::find(const char* name) const {
  read_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::at(const char* name) const {
  const Json* const value = find(name);
  require_field(value != nullptr, path(name), field_code::missing, "{} has no \"{}\"", owner(),
                name);
  return *value;
}

std::optional<std::int64_t> Fields::integer(const char* name, std::int64_t min,
                                            std::int64_t max) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  // What is above the range of a signed number is refused as too large.
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() &&
                      value->get<std::uint64_t>() > static_cast<std::uint64_t>(highest_integer));
  const bool bounded = min != lowest_integer || max != highest_integer;
  const char* const code =
      value->is_number_integer() ? field_code::invalid_value : field_code::invalid_type;
  require_field(fits && value->get<std::int64_t>() >= min && value->get<std::int64_t>() <= max,
                path(name), code, "{} must be a whole number{}, not {}", label(name),
                bounded ? fmt::format(" from {} to {}", min, max) : "", shown(*value));
  return value->get<std::int64_t>();
}

std::optional<double> Fields::number(const char* name, double min, double max) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const bool bounded = min != -highest_number || max != highest_number;
  const char* const code =
      value->is_number() ? field_code::invalid_value : field_code::invalid_type;
  require_field(value->is_number() && value->get<double>() >= min && value->get<double>() <= max,
                path(name), code, "{} must be a number{}, not {}", label(name),
                bounded ? fmt::format(" from {} to {}", min, max) : "", shown(*value));
  return value->get<double>();
}

std::optional<bool> Fields::boolean(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  require_field(value->is_boolean(), path(name), field_code::invalid_type,
                "{} must be true or false, not {}", label(name), shown(*value));
  return value->get<bool>();
}

std::optional<std::string> Fields::string(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  require_field(value->is_string(), path(name), field_code::invalid_type,
                "{} must be a string, not {}", label(name), shown(*value));
  return value->get<std::string>();
}

std::vector<std::string> Fields::strings(const char* name, std::size_t max) const {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  require_field(value->is_array() && value->size() <= max, path(name),
                value->is_array() ? field_code::invalid_value : field_code::invalid_type,
                "{} must be a string or up to {} of them, not {}", label(name), max, shown(*value));
  std::vector<std::string> strings;
  for (const Json& item : *value) {
    require_field(item.is_string(), path(name), field_code::invalid_type,
                  "{} must hold strings, not {}", label(name), shown(item));
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

std::int64_t Fields::required_integer(const char* name) const {
  at(name);
  return *integer(name);
}

float Fields::required_float(const char* name) const {
  const Json& value = at(name);
  const bool fits = value.is_number() && std::isfinite(value.get<float>());
  require_field(fits, path(name), field_code::invalid_type,
                "{} must be a finite 32-bit number, not {}", label(name), shown(value));
  return value.get<float>();
}

std::string Fields::required_string(const char* name) const {
  at(name);
  return *string(name);
}

const Json& Fields::required_list(const char* name) const {
  const Json& value = at(name);
  require_field(value.is_array(), path(name), field_code::invalid_type, "{} must be a list, not {}",
                label(name), shown(value));
  return value;
}

std::vector<float> Fields::required_floats(const char* name) const {
  std::vector<float> values;
  for (const Json& value : required_list(name)) {
    const bool fits = value.is_number() && std::isfinite(value.get<float>());
    require_field(fits, path(name), field_code::invalid_type,
                  "{} must hold finite 32-bit numbers, not {}", label(name), shown(value));
    values.push_back(value.get<float>());
  }
  return values;
}

std::vector<std::int32_t> Fields::required_token_ids(const char* name,
                                                     std::int64_t vocabulary) const {
  return token_ids(required_list(name), vocabulary, label(name), path(name));
}

Fields Fields::required_object(const char* name) const {
  return Fields(at(name), label(name), path(name));
}

void Fields::expect_only(const std::vector<std::string_view>& names) const {
  for (const auto& [key, value] : object_.items()) {
    if (std::ranges::find(names, key) != names.end()) continue;
    const std::vector<std::string> candidates(names.begin(), names.end());
    const std::vector<std::string> nearest = nearest_names(key, candidates, 1);
    const std::string hint =
        nearest.empty() ? "it has no fields" : fmt::format("did you mean \"{}\"?", nearest.front());
    throw FieldError(path(key.substr(0, 100).c_str()), field_code::unknown,
                     fmt::format("{} has an unknown {}; {}", owner(), shown(key), hint));
  }
}

std::vector<std::int32_t> token_ids(const Json& array, std::int64_t vocabulary,
                                    const std::string& label, const std::string& path) {
  std::vector<std::int32_t> ids;
  for (const Json& item : array) {
    // As a double nothing wraps around.
    require_field(item.is_number_integer() && item.get<double>() >= 0 &&
                      item.get<double>() < static_cast<double>(vocabulary),
                  path, field_code::invalid_value,
                  "{} holds {}, which is not a token id from 0 to {}", label, shown(item),
                  vocabulary - 1);
    ids.push_back(item.get<std::int32_t>());
  }
  return ids;
}

}  // namespace heed::server
