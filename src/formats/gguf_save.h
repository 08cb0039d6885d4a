// Writes a model as a GGUF file that other programs read: weights, tokenizer and chat template.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/weight_blocks.h"
#include "formats/config_file.h"
#include "model/transformer.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// How matrices are stored; vectors, and tables of positions, stay f32.
enum class GgufWeights : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q4_k_m };

// "f32", …, "q4_k_m". Throws Error{invalid_argument} naming them.
GgufWeights parse_gguf_weights(std::string_view name);
std::string_view gguf_weights_name(GgufWeights weights);

// The type of each matrix of a model, in the order in which they are written: as llama.cpp chooses
// it, which gives the unembedding, and with q4_k_m some layers' values and second feed-forward
// matrices, more bits, and falls back to other types where rows are no whole blocks.
class GgufTypes {
 public:
  enum class Unembedding : std::uint8_t { own, tied };

  GgufTypes(GgufWeights weights, std::int64_t layers, Unembedding unembedding)
      : weights_(weights), layers_(layers), unembedding_(unembedding) {}

  BlockType of(const std::string& name, const Shape& shape);

 private:
  BlockType wanted(const std::string& name, std::int64_t row);
  bool takes_more_bits(std::int64_t layer) const;

  GgufWeights weights_;
  std::int64_t layers_;
  Unembedding unembedding_;
  std::int64_t values_ = 0;  // of layers that were seen
};

struct GgufContent {
  std::string name;                      // of the model, for people
  const Tokenizer* tokenizer = nullptr;  // null: none
  std::string chat_template{};           // empty: none
};

// Writes the file under a temporary name, tensor by tensor, and renames it when it is whole. Of
// BERT, the head of a masked language model is left out: the format has no tensors for it.
// `source` is what the model was loaded from. Throws Error{unsupported} for a model that the format
// cannot describe, naming what it would be read as, and for a number that a type cannot hold,
// naming its tensor.
void save_gguf(const Transformer& model, const std::filesystem::path& file,
               const SourceFiles& source, const GgufContent& content, GgufWeights weights);

}  // namespace heed
