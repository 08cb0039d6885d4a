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

// The directory of a model that is named by itself or by a safetensors file (or the index of its
// shards) in it. Throws Error{not_found} for what is not there or has no config.json beside it,
// Error{unsupported} for a file of another kind.
std::filesystem::path model_directory(const std::filesystem::path& directory_or_file);

// Tensor names may carry the prefix "transformer."; f32, f16 and bf16 are read. Throws
// Error{not_found} for missing files and Error{corrupt_data} where the tensors contradict the
// config: one is missing, left over, or of another shape. A model whose matrices were saved in a
// shorter format is prepared in it (GptParameters::prepare); its parameters are what those matrices
// stand for.
Gpt load_gpt(const std::filesystem::path& directory_or_file);

// The same from the contents of both files in memory, which need to last for the call only.
struct GptBytes {
  std::string name;  // for messages
  std::string_view config;
  std::span<const std::byte> weights;
};
Gpt load_gpt(const GptBytes& files);

// A text that belongs to a model, such as its tokenizer.json: saved with it, or not at all.
struct CompanionFile {
  std::string name;
  std::string text;
};

// Writes both files and the companions; what `transformers` loads as a GPT2LMHeadModel. A model
// without biases is written with zeros in their place, and marked so in config.json.
//
// With a format other than f32, the matrices that products read are shortened to it: bf16 as
// tensors of BF16, integers as src/model/integer_weights.h describes, the format named under the
// key `heed` of config.json. Tables of embeddings, also one that is the vocabulary projection,
// norms and biases stay f32. Loaded again, the model computes, to the bit, what it would if it were
// prepared in that format.
//
// All files are written beside before the first takes its place, so that a full disk leaves the
// old model. An end between two renamings leaves the new weights with unchanged texts, or, where a
// text has changed, a directory without config.json: never a model of parts of two.
void save_gpt(const Gpt& gpt, const std::filesystem::path& directory,
              const std::vector<CompanionFile>& companions = {},
              kernels::WeightFormat format = kernels::WeightFormat::f32);

}  // namespace heed
