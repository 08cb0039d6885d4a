// A GPT as a directory in the Hugging Face GPT-2 layout: config.json and model.safetensors (or
// shards of it).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "model/gpt.h"

namespace heed {

inline constexpr const char* config_file_name = "config.json";
inline constexpr const char* weights_file_name = "model.safetensors";

// Tensor names may carry the prefix "transformer."; f32, f16 and bf16 are read. Throws
// Error{not_found} for missing files and Error{corrupt_data} where the tensors contradict the
// config: one is missing, left over, or of another shape.
Gpt load_gpt(const std::filesystem::path& directory);

// The same from the contents of both files in memory, which need to last for the call only.
struct GptBytes {
  std::string name;  // for messages
  std::string_view config;
  std::span<const std::byte> weights;
};
Gpt load_gpt(const GptBytes& files);

// Writes both files, each beside and renamed; what `transformers` loads as a GPT2LMHeadModel. A
// model without biases is written with zeros in their place, and marked so in config.json.
void save_gpt(const Gpt& gpt, const std::filesystem::path& directory);

}  // namespace heed
