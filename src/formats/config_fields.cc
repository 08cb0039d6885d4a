#include "formats/config_fields.h"

#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "base/decimal.h"

namespace heed {
std::int64_t ConfigFields::integer_of(const Json& value, const char* key, std::int64_t least,
                                      std::int64_t most) const {
  constexpr double exact = 9007199254740992;  // 2^53: below it, every whole number is a double
  if (value.is_number_float()) {
    const auto real = value.get<double>();
    if (std::abs(real) < exact && std::trunc(real) == real) {
      return json_integer(Json(static_cast<std::int64_t>(real)), label(key), least, most);
    }
  }
  return json_integer(value, label(key), least, most);
}

std::int64_t ConfigFields::integer_under(std::initializer_list<const char*> keys) const {
  const char* read = nullptr;
  for (const char* const key : keys) {
    if (!has(key)) continue;
    if (read == nullptr) read = key;
    require(integer(key) == integer(read), ErrorCode::corrupt_data,
            "{}: '{}' is {} and '{}' is {}: two names of one number", source_, read, integer(read),
            key, integer(key));
  }
  return integer(read == nullptr ? *keys.begin() : read);
}

Activation activation_from_name(const ConfigFields& fields, const char* key,
                                const char* otherwise) {
  const std::string given = fields.text_or(key, otherwise);
  std::string known;
  for (const kernels::ActivationDescription& row : kernels::activations) {
    for (const std::string_view name : row.names) {
      if (name.empty()) continue;
      if (name == given) return row.activation;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
    }
  }
  fail(ErrorCode::unsupported, "{}: {} '{}' is not one of {}", fields.source(), key, given, known);
}

void require_config_extents(const ConfigFields& fields,
                            std::initializer_list<ConfigExtent> extents) {
  for (const ConfigExtent& extent : extents) {
    require(extent.value >= 1 && extent.value <= extent.most, ErrorCode::corrupt_data,
            "{}: the model's {} must be between 1 and {}, not {}", fields.source(), extent.name,
            extent.most, extent.value);
  }
}

double short_decimal(float value) { return rounded_decimal(value, 7); }

}  // namespace heed
