// A GPT as a directory in the Hugging Face GPT-2 layout: config.json and model.safetensors (or
// shards of it).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gpt.h"

namespace heed {

inline constexpr const char* config_file_name = "config.json";
inline constexpr const char* weights_file_name = "model.safetensors";

// The directory of a model, given the directory itself or a safetensors file (or the index of its
// shards) in it. Throws Error{not_found} where the path or config.json is missing, and
// Error{unsupported} for another kind of file.
std::filesystem::path model_directory(const std::filesystem::path& directory_or_file);

// Tensor names may carry the prefix "transformer."; f32, f16 and bf16 are read. Throws
// Error{not_found} for missing files and Error{corrupt_data} where the tensors contradict the
// config: one is missing, unexpected, or of another shape. A model that was saved quantised is
// prepared in that format (GptParameters::prepare); its parameters are the dequantised matrices.
Gpt load_gpt(const std::filesystem::path& directory_or_file);

// The same from the contents of both files in memory, borrowed for the call.
struct GptBytes {
  std::string name;  // for messages
  std::string_view config;
  std::span<const std::byte> weights;
};
Gpt load_gpt(const GptBytes& files);

// A file saved together with a model, such as its tokenizer.json.
struct CompanionFile {
  std::string name;
  std::string text;
};

// Writes both files and the companions, in the layout that `transformers` loads as a
// GPT2LMHeadModel. A model without biases is written with zeros for them, and marked in
// config.json.
//
// With a format other than f32, the matrices of linear layers are quantised to it: bf16 as tensors
// of BF16, integers as src/model/integer_weights.h describes; config.json names the format under
// the key `heed`. Embedding tables (also one tied to the unembedding), norms and biases stay f32.
// Loaded again, the model computes, to the bit, what it would if it were prepared in that format.
//
// All files are written under temporary names before the first is renamed, so that a full disk
// leaves the old model. A crash between two renames leaves the new weights with unchanged
// companions or, where one has changed, a directory without config.json: never a mixture of two
// models.
void save_gpt(const Gpt& gpt, const std::filesystem::path& directory,
              const std::vector<CompanionFile>& companions = {},
              kernels::WeightFormat format = kernels::WeightFormat::f32);

}  // namespace heed
