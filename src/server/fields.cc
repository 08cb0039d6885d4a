#include "server/fields.h"

#include "base/error.h"

namespace heed::server {

std::string shown(const Json& value) {
  if (value.is_object() || value.is_array()) return std::string("an ") + value.type_name();
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= 40) return text;
  std::size_t end = 40;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole characters only
  return text.substr(0, end) + "…";
}

const Json* Fields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> Fields::integer(const char* name, std::int64_t least,
                                            std::int64_t most) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  // What is above the range of a signed number is refused as too large.
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() &&
                      value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX));
  require(fits && value->get<std::int64_t>() >= least && value->get<std::int64_t>() <= most,
          ErrorCode::invalid_argument, "{} must be a whole number from {} to {}, not {}", name,
          least, most, shown(*value));
  return value->get<std::int64_t>();
}

std::optional<double> Fields::number(const char* name, double least, double most) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  require(value->is_number() && value->get<double>() >= least && value->get<double>() <= most,
          ErrorCode::invalid_argument, "{} must be a number from {} to {}, not {}", name, least,
          most, shown(*value));
  return value->get<double>();
}

std::optional<bool> Fields::boolean(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  require(value->is_boolean(), ErrorCode::invalid_argument, "{} must be true or false, not {}",
          name, shown(*value));
  return value->get<bool>();
}

std::optional<std::string> Fields::string(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  require(value->is_string(), ErrorCode::invalid_argument, "{} must be a string, not {}", name,
          shown(*value));
  return value->get<std::string>();
}

std::vector<std::string> Fields::strings(const char* name, std::size_t most) const {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  require(value->is_array() && value->size() <= most, ErrorCode::invalid_argument,
          "{} must be a string or up to {} of them, not {}", name, most, shown(*value));
  std::vector<std::string> strings;
  for (const Json& item : *value) {
    require(item.is_string(), ErrorCode::invalid_argument, "{} must hold strings, not {}", name,
            shown(item));
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

std::vector<std::int32_t> token_ids(const Json& array, std::int64_t vocabulary, const char* name) {
  std::vector<std::int32_t> ids;
  for (const Json& item : array) {
    // As a double nothing wraps around.
    require(item.is_number_integer() && item.get<double>() >= 0 &&
                item.get<double>() < static_cast<double>(vocabulary),
            ErrorCode::invalid_argument, "{} holds {}, which is no token id from 0 to {}", name,
            shown(item), vocabulary - 1);
    ids.push_back(item.get<std::int32_t>());
  }
  return ids;
}

}  // namespace heed::server
