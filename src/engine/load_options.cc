#include "engine/load_options.h"

#include "base/error.h"

namespace heed {
namespace {

using kernels::WeightFormat;

WeightFormat weight_format(WeightType type) {
  switch (type) {
    case WeightType::as_stored:
    case WeightType::f32: return WeightFormat::f32;
    case WeightType::bf16: return WeightFormat::bf16;
    case WeightType::int8: return WeightFormat::int8;
    case WeightType::int4: return WeightFormat::int4;
  }
  fail(ErrorCode::invalid_argument, "there is no type of weights {}", static_cast<int>(type));
}

}  // namespace

CacheType cache_type_of(KeyValueType type) {
  switch (type) {
    case KeyValueType::f32: return CacheType::f32;
    case KeyValueType::bf16: return CacheType::bf16;
    case KeyValueType::int8: return CacheType::int8;
  }
  fail(ErrorCode::invalid_argument, "there is no type of keys and values {}",
       static_cast<int>(type));
}

void prepare_weights(Parameters& parameters, WeightType type, const std::string& name) {
  if (type == WeightType::as_stored) return;
  const WeightFormat wanted = weight_format(type);
  require_rounded_once(parameters, wanted, name);
  if (wanted != parameters.prepared_format()) parameters.prepare(wanted);
}

void require_rounded_once(const Parameters& parameters, WeightFormat wanted,
                          const std::string& name) {
  const WeightFormat stored = parameters.prepared_format();
  require(stored == WeightFormat::f32 || wanted == WeightFormat::f32 || wanted == stored,
          ErrorCode::unsupported,
          "'{}' is stored in {} and would be rounded twice in {}: use the model that it was "
          "converted from",
          name, kernels::weight_format_name(stored), kernels::weight_format_name(wanted));
}

WeightType parse_weight_type(std::string_view name) {
  if (name.empty()) return WeightType::as_stored;
  switch (kernels::parse_weight_format(name)) {
    case WeightFormat::f32: return WeightType::f32;
    case WeightFormat::bf16: return WeightType::bf16;
    case WeightFormat::int8: return WeightType::int8;
    case WeightFormat::int4: break;
  }
  return WeightType::int4;
}

KeyValueType parse_key_value_type(std::string_view name) {
  switch (kernels::parse_cache_type(name)) {
    case CacheType::f32: return KeyValueType::f32;
    case CacheType::bf16: return KeyValueType::bf16;
    case CacheType::int8: break;
  }
  return KeyValueType::int8;
}

LoadedModel load_model(const std::string& name_or_path, const LoadOptions& options) {
  weight_format(options.weights);  // refused before anything is read
  const CacheType cache = cache_type_of(options.cache);
  LoadedModel loaded = load_model(name_or_path);
  loaded.cache_type = cache;
  prepare_weights(loaded.gpt.parameters(), options.weights, name_or_path);
  if (options.pack) pack_for_prompts(loaded);
  return loaded;
}

}  // namespace heed
