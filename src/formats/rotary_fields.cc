#include "formats/rotary_fields.h"

#include <array>
#include <utility>

namespace heed {
namespace {

constexpr std::array<std::pair<const char*, RotaryScalingKind>, 5> kinds{{
    {"default", RotaryScalingKind::none},
    {"linear", RotaryScalingKind::linear},
    {"dynamic", RotaryScalingKind::dynamic},
    {"llama3", RotaryScalingKind::llama3},
    {"yarn", RotaryScalingKind::yarn},
}};

RotaryScalingKind kind_from_name(const ConfigFields& fields, const std::string& name) {
  for (const auto& [known, kind] : kinds) {
    if (name == known) return kind;
  }
  fail(ErrorCode::unsupported,
       "{}: the rotary scaling '{}' is not one of default, linear, dynamic, llama3, yarn",
       fields.source(), name);
}

}  // namespace

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
  require(scaling.has("factor"), ErrorCode::corrupt_data, "{}: 'factor' is missing",
          scaling.source());
  read.factor = scaling.real_or("factor", 1);
  if (read.kind == RotaryScalingKind::linear) return;
  read.original_context = scaling.integer_or("original_max_position_embeddings", context);
  if (read.kind == RotaryScalingKind::llama3) {
    read.low_frequency_factor = scaling.real_or("low_freq_factor", 1);
    read.high_frequency_factor = scaling.real_or("high_freq_factor", 4);
  } else if (read.kind == RotaryScalingKind::yarn) {
    read.fast_rotations = scaling.real_or("beta_fast", 32);
    read.slow_rotations = scaling.real_or("beta_slow", 1);
    read.attention_factor = scaling.real_or("attention_factor", 0);
    for (const char* const key : {"mscale", "mscale_all_dim"}) {
      require(!scaling.has(key), ErrorCode::unsupported, "{}: heed does not support '{}'",
              scaling.source(), key);
    }
    require(scaling.boolean_or("truncate", true), ErrorCode::unsupported,
            "{}: 'truncate' is false; heed supports true only", scaling.source());
  }
}

void write_rotary_scaling(const RotarySpecification& rotary, OrderedJson& json) {
  const RotaryScaling& scaling = rotary.scaling;
  if (scaling.kind == RotaryScalingKind::none) return;
  OrderedJson written;
  for (const auto& [name, kind] : kinds) {
    if (kind == scaling.kind) written["rope_type"] = name;
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
  }
  json["rope_scaling"] = written;
}

}  // namespace heed
