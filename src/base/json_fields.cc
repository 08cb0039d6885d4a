#include "base/json_fields.h"

#include "base/error.h"

namespace heed {
namespace {

[[noreturn]] void refuse(const JsonLabel& label, const std::string& expected, const Json& value) {
  fail(label.code, "{} must be {}, not {}", label.text, expected, shown_json(value));
}

template <class Number>
std::string within(const std::string& kind, Number least, Number most) {
  using Limits = std::numeric_limits<Number>;
  const bool bounded = least != Limits::lowest() || most != Limits::max();
  return bounded ? fmt::format("{} from {} to {}", kind, least, most) : kind;
}

}  // namespace

const Json* find_json_member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::int64_t json_integer(const Json& value, const JsonLabel& label, std::int64_t least,
                          std::int64_t most) {
  // get<int64>() of an unsigned number from 2^63 on would wrap around.
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
    refuse(label, within("a whole number", least, most), value);
  }
  return value.get<std::int64_t>();
}

double json_real(const Json& value, const JsonLabel& label, double least, double most) {
  if (!value.is_number() || value.get<double>() < least || value.get<double>() > most) {
    refuse(label, within("a number", least, most), value);
  }
  return value.get<double>();
}

bool json_boolean(const Json& value, const JsonLabel& label) {
  if (!value.is_boolean()) refuse(label, "true or false", value);
  return value.get<bool>();
}

const std::string& json_string(const Json& value, const JsonLabel& label) {
  if (!value.is_string()) refuse(label, "a string", value);
  return value.get_ref<const std::string&>();
}

std::string shown_json(const Json& value) {
  if (value.is_object() || value.is_array()) return std::string("an ") + value.type_name();
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= 40) return text;
  std::size_t end = 40;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole characters only
  return text.substr(0, end) + "…";
}

}  // namespace heed
