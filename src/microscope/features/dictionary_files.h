// Files of sparse dictionaries: what SAELens, circuit-tracer and Gemma Scope publish.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "checkpoint/safetensors.h"
#include "microscope/features/dictionary.h"

namespace heed {

// Of SAELens's directories.
inline constexpr const char* saelens_config_name = "cfg.json";
inline constexpr const char* saelens_weights_name = "sae_weights.safetensors";

// What the files do not say, or what is wanted instead.
struct DictionaryOptions {
  std::string input_point{};
  std::string output_point{};  // empty: the input point, or what the files say
  // What activations were multiplied by in training (expected_average_only_in), where weights were
  // saved before it was folded into them.
  std::optional<double> norm_scaling_factor{};
};

// Reads
//   a directory of SAELens: cfg.json and sae_weights.safetensors, of any version; or one of such
//   directories, a dictionary each, in the order of their names;
//   params.npz of Gemma Scope, or its directory, whose point follows from the names of folders;
//   a directory of circuit-tracer: layer_0.safetensors, … with config.yaml (a transcoder each), or
//   W_enc_0.safetensors and W_dec_0.safetensors, … (a cross-layer transcoder, a dictionary for each
//   layer that it reads).
// W_enc and W_dec of SAELens's may be int8, with a scale for each feature (W_enc_scale,
// W_dec_scale). Throws Error{not_found} where none of these is there, Error{corrupt_data} for a
// missing tensor or field and one that contradicts the others, and Error{unsupported} for an
// unknown architecture.
std::vector<Dictionary> load_dictionaries(const std::filesystem::path& path,
                                          const DictionaryOptions& options = {});

// Of a config of SAELens's and its tensors. `source` names them in messages.
Dictionary saelens_dictionary(const Json& config, std::span<const TensorEntry> tensors,
                              const std::string& source, const DictionaryOptions& options = {});
// Of Gemma Scope's arrays: W_enc (I, F), W_dec (F, O), b_enc, b_dec, threshold.
Dictionary gemma_scope_dictionary(std::span<const TensorEntry> tensors, const std::string& source,
                                  const DictionaryOptions& options = {});
// Of the tensors of one layer's transcoder: W_enc (F, I), W_dec (F, O), b_enc, b_dec, and
// activation_function.threshold, k and W_skip where it has them.
Dictionary transcoder_dictionary(std::span<const TensorEntry> tensors, const std::string& source,
                                 const DictionaryOptions& options = {});

// Writes cfg.json and sae_weights.safetensors in the layout of SAELens 6, beside what is there and
// then renamed; `metadata` joins that of cfg.json. Throws Error{unsupported} for a cross-layer
// transcoder.
void save_dictionary(const Dictionary& dictionary, const std::filesystem::path& directory,
                     const OrderedJson& metadata);

}  // namespace heed
