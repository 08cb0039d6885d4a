// Loading with the public interface's options.
#pragma once

#include <string>
#include <string_view>

#include "engine/loaded_model.h"
#include "heed/heed.h"

namespace heed {

// "f32", "bf16", "int8" or "int4"; empty: as stored. Throws Error{invalid_argument} for another.
WeightType parse_weight_type(std::string_view name);
// "f32", "bf16" or "int8". Throws Error{invalid_argument} for another.
KeyValueType parse_key_value_type(std::string_view name);

// Throw Error{invalid_argument} for a number that is none of the enumeration.
CacheType cache_type_of(KeyValueType type);

// Quantises the matrices of the model `name`, where they are not of that type already. Throws
// Error{unsupported} for weights that would be rounded twice.
void prepare_weights(Parameters& parameters, WeightType type, const std::string& name);

// Throws Error{unsupported} where the model `name` is stored rounded, and would be rounded again.
void require_rounded_once(const Parameters& parameters, kernels::WeightFormat wanted,
                          const std::string& name);

// Throws what load_model throws, and Error{unsupported} for weights that would be rounded twice.
LoadedModel load_model(const std::string& name_or_path, const LoadOptions& options);

}  // namespace heed
