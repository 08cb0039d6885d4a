// What a GGUF file's metadata says of its model, as a config.json, and back.
#pragma once

#include <functional>
#include <string_view>

#include "base/json.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_writer.h"
#include "checkpoint/safetensors.h"
#include "formats/gguf_families.h"

namespace heed {

// A tensor of the file; null where it has none of that name.
using FindTensor = std::function<const TensorEntry*(std::string_view name)>;

// The config.json of the model, in the family of its `general.architecture`. Which biases a model
// has, and whether its unembedding is tied, is told by its tensors. Throws Error{corrupt_data}
// naming the key, its value and what was expected, and Error{unsupported} for what heed would
// compute differently.
Json gguf_config(const GgufFile& file, const FindTensor& find);

// The factors by which rotary frequencies are divided in LLaMA 3.1 and later; none where its
// scaling is of another kind.
std::vector<float> rotary_factors(const RotarySpecification& rotary, std::int64_t head_size);

// The tensors of factors that a file has beside parameters: those, or longrope's.
struct RotaryFactors {
  std::string_view name;
  std::vector<float> factors;
};
std::vector<RotaryFactors> rotary_factor_tensors(const AttentionSpecification& attention);

// How one vector is made of an encoder's states (formats/pooling.h): a key of the metadata, and a
// field of config.json.
inline constexpr const char* pooling_field = "pooling_type";

// The metadata of a model whose config.json, as its format writes it, is `config`, to which
// `pooling_field` may be added.
void write_gguf_config(const GgufFamily& family, const Json& config,
                       const Architecture& architecture, GgufMetadata& metadata);

}  // namespace heed
