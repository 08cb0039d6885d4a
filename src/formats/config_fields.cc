#include "formats/config_fields.h"

#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/numbers.h"

namespace heed {
namespace {

constexpr std::array<std::pair<const char*, RotaryScalingKind>, 7> kinds{{
    {"default", RotaryScalingKind::none},
    {"linear", RotaryScalingKind::linear},
    {"dynamic", RotaryScalingKind::dynamic},
    {"llama3", RotaryScalingKind::llama3},
    {"yarn", RotaryScalingKind::yarn},
    {"longrope", RotaryScalingKind::longrope},
    {"su", RotaryScalingKind::longrope},  // its older name
}};

RotaryScalingKind kind_from_name(const ConfigFields& fields, const std::string& name) {
  for (const auto& [known, kind] : kinds) {
    if (name == known) return kind;
  }
  fail(ErrorCode::unsupported,
       "{}: the rotary scaling '{}' is not one of default, linear, dynamic, llama3, yarn, longrope",
       fields.source(), name);
}

void read_yarn(const ConfigFields& scaling, RotaryScaling& read) {
  const auto unless_zero = [&](const char* key, double otherwise) {
    const double value = scaling.real_or(key, otherwise);
    return value == 0 ? otherwise : value;
  };
  read.fast_rotations = unless_zero("beta_fast", 32);
  read.slow_rotations = unless_zero("beta_slow", 1);
  read.attention_factor = scaling.real_or("attention_factor", 0);
  require(!scaling.has("attention_factor") || read.attention_factor > 0, ErrorCode::corrupt_data,
          "{}: 'attention_factor' must be above 0, not {}", scaling.source(),
          read.attention_factor);
  read.magnitude = scaling.real_or("mscale", 0);
  read.magnitude_all = scaling.real_or("mscale_all_dim", 0);
  read.whole_channels = scaling.boolean_or("truncate", true);
}

std::vector<double> read_factors(const ConfigFields& scaling, const char* key) {
  require(scaling.has(key) && scaling.at(key).is_array() &&
              scaling.at(key).size() <= static_cast<std::size_t>(max_heads),
          ErrorCode::corrupt_data, "{}: '{}' must be a list of numbers", scaling.source(), key);
  std::vector<double> factors;
  for (const Json& factor : scaling.at(key)) {
    factors.push_back(json_real(factor, {fmt::format("{}: '{}'", scaling.source(), key)}));
  }
  return factors;
}

void read_longrope(const ConfigFields& scaling, RotaryScaling& read) {
  read.short_factors = read_factors(scaling, "short_factor");
  read.long_factors = read_factors(scaling, "long_factor");
  read.attention_factor = scaling.real_or("attention_factor", 0);
}

}  // namespace

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

void read_rotary(const ConfigFields& fields, std::int64_t context, RotarySpecification& rotary) {
  rotary.base = fields.real_or("rope_theta", fields.real_or("rotary_emb_base", 10000));
  const bool is_new = fields.has("rope_parameters");
  const ConfigFields scaling = fields.object_or_empty(is_new ? "rope_parameters" : "rope_scaling");
  rotary.base = scaling.real_or("rope_theta", rotary.base);
  rotary.fraction = scaling.real_or("partial_rotary_factor",
                                    fields.real_or("partial_rotary_factor", rotary.fraction));
  const std::string name = scaling.text_or("rope_type", scaling.text_or("type", "default").c_str());
  RotaryScaling& read = rotary.scaling;
  read.kind = kind_from_name(scaling, name);
  if (read.kind == RotaryScalingKind::none) return;
  constexpr const char* original = "original_max_position_embeddings";
  if (read.kind != RotaryScalingKind::linear) {
    read.original_context = scaling.integer_or(original, fields.integer_or(original, context));
  }
  // yarn's factor may be left to the two contexts; longrope's is theirs wherever both are there.
  const bool has_both = scaling.has(original) || fields.has(original);
  const bool is_ratio =
      has_both && (read.kind == RotaryScalingKind::longrope ||
                   (read.kind == RotaryScalingKind::yarn && !scaling.has("factor")));
  require(scaling.has("factor") || is_ratio, ErrorCode::corrupt_data, "{}: 'factor' is missing",
          scaling.source());
  read.factor = is_ratio ? static_cast<double>(context) / static_cast<double>(read.original_context)
                         : scaling.real_or("factor", 1);
  if (read.kind == RotaryScalingKind::llama3) {
    read.low_frequency_factor = scaling.real_or("low_freq_factor", 1);
    read.high_frequency_factor = scaling.real_or("high_freq_factor", 4);
  } else if (read.kind == RotaryScalingKind::yarn) {
    read_yarn(scaling, read);
  } else if (read.kind == RotaryScalingKind::longrope) {
    read_longrope(scaling, read);
  }
}

void write_rotary_scaling(const RotarySpecification& rotary, OrderedJson& json) {
  const RotaryScaling& scaling = rotary.scaling;
  if (scaling.kind == RotaryScalingKind::none) return;
  OrderedJson written;
  for (const auto& [name, kind] : kinds) {
    if (kind == scaling.kind && !written.contains("rope_type")) written["rope_type"] = name;
  }
  written["factor"] = scaling.factor;
  if (scaling.original_context > 0) {
    written["original_max_position_embeddings"] = scaling.original_context;
  }
  if (scaling.kind == RotaryScalingKind::llama3) {
    written["low_freq_factor"] = scaling.low_frequency_factor;
    written["high_freq_factor"] = scaling.high_frequency_factor;
  } else if (scaling.kind == RotaryScalingKind::yarn) {
    written["beta_fast"] = scaling.fast_rotations;
    written["beta_slow"] = scaling.slow_rotations;
    if (scaling.attention_factor > 0) written["attention_factor"] = scaling.attention_factor;
    if (scaling.magnitude > 0) written["mscale"] = scaling.magnitude;
    if (scaling.magnitude_all > 0) written["mscale_all_dim"] = scaling.magnitude_all;
    if (!scaling.whole_channels) written["truncate"] = false;
  } else if (scaling.kind == RotaryScalingKind::longrope) {
    written["short_factor"] = scaling.short_factors;
    written["long_factor"] = scaling.long_factors;
    if (scaling.attention_factor > 0) written["attention_factor"] = scaling.attention_factor;
    json["original_max_position_embeddings"] = scaling.original_context;
  }
  json["rope_scaling"] = written;
}

}  // namespace heed
