// The shape of a GPT, read from and written to Hugging Face's GPT-2 config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/json_fwd.h"
#include "kernels/operands.h"

namespace heed {

using kernels::Activation;

struct GptConfig {
  std::int64_t vocabulary_size = 50257;  // V
  std::int64_t context = 1024;           // longest sequence: rows of the position table
  std::int64_t channels = 768;           // C, width of the residual stream
  std::int64_t layers = 12;              // L
  std::int64_t heads = 12;               // H
  std::int64_t head_size = 64;           // D; usually C / H
  std::int64_t feed_forward = 3072;      // F; usually 4·C
  Activation activation = Activation::gelu_tanh;
  float norm_epsilon = 1e-5F;
  float initial_deviation = 0.02F;  // of the weights before training
  bool has_bias = true;             // in linear layers and norms
  bool tied_unembedding = true;     // the unembedding is the token embedding
  bool unembedding_bias = false;    // added to the logits
  float embedding_dropout = 0.0F;   // after token + position embedding
  float attention_dropout = 0.0F;   // on the attention pattern
  float residual_dropout = 0.0F;    // on the outputs of attention and feed-forward
  std::int64_t end_of_text = -1;    // token that separates documents; -1: none

  std::int64_t attention_width() const { return heads * head_size; }  // A = H·D

  // Throws Error{invalid_argument} naming the first impossible value.
  void validate() const;

  bool operator==(const GptConfig&) const = default;
};

// A config with the usual proportions: head_size = channels / heads, feed_forward = 4·channels.
// Throws Error{invalid_argument} unless channels is a multiple of heads.
GptConfig make_gpt_config(std::int64_t layers, std::int64_t heads, std::int64_t channels,
                          std::int64_t context, std::int64_t vocabulary_size);

// `source` names the document in errors. Throws Error{corrupt_data} for a missing or impossible
// value and Error{unsupported} for an option that heed does not support.
GptConfig gpt_config_from_json(const Json& document, const std::string& source);
OrderedJson gpt_config_to_json(const GptConfig& config);

// The document of a config.json. Throws as read_text_file and parse_json do.
Json read_config_document(const std::filesystem::path& file);
GptConfig read_gpt_config(const std::filesystem::path& file);

const char* activation_name(Activation activation);  // Hugging Face's: "gelu_new", "gelu", "relu"

}  // namespace heed
