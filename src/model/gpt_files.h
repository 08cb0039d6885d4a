// A GPT as a directory in the Hugging Face GPT-2 layout: config.json and model.safetensors (or
// shards of it).
#pragma once

#include <filesystem>

#include "model/gpt.h"

namespace heed {

inline constexpr const char* config_file_name = "config.json";
inline constexpr const char* weights_file_name = "model.safetensors";

// Tensor names may carry the prefix "transformer."; f32, f16 and bf16 are read. Throws
// Error{not_found} for missing files and Error{corrupt_data} where the tensors contradict the
// config: one is missing, left over, or of another shape.
Gpt load_gpt(const std::filesystem::path& directory);

// Writes both files, each beside and renamed; what `transformers` loads as a GPT2LMHeadModel. A
// model without biases is written with zeros in their place, and marked so in config.json.
void save_gpt(const Gpt& gpt, const std::filesystem::path& directory);

}  // namespace heed
