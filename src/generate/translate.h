// Translation of texts: tokens of the source, beam search, text of the target.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate/beam_search.h"
#include "tensor/tensor.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// The tokens of sources, one below the other.
struct SourceTokens {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> row_starts{0};

  TokenRows rows() const { return {tokens, row_starts}; }
  std::int64_t count() const { return std::ssize(row_starts) - 1; }
  std::span<const std::int32_t> source(std::int64_t index) const;
  void add(std::span<const std::int32_t> source);
};

// The tokens of a source text, with those that its tokenizer puts around texts. Throws
// Error{invalid_argument} for a text that is empty or white space, is not UTF-8, has more tokens
// than the encoder reads, or has one that the model does not know; messages begin with `name`,
// such as "line 3".
std::vector<std::int32_t> encode_source(const Architecture& architecture,
                                        const Tokenizer& tokenizer, std::string_view text,
                                        std::string_view name);

// The text of a hypothesis: valid UTF-8, without its end and other special tokens.
std::string decode_target(const Tokenizer& tokenizer, std::span<const std::int32_t> tokens);

// Beam search that generates only tokens that the target's tokenizer has: a model's vocabulary may
// be padded.
std::vector<std::vector<TokenHypothesis>> translate_tokens(const Transformer& model,
                                                           const Tokenizer& target,
                                                           const SourceTokens& sources,
                                                           BeamOptions options);

// Cross-attention (L, H, T, S) while the decoder writes `target` (T tokens, its end included):
// row t is what the position attends to from which target[t] is predicted. Throws
// Error{invalid_argument} for no tokens, too many and ids outside the vocabularies.
Tensor<float> cross_attention(const Transformer& model, std::span<const std::int32_t> source,
                              std::span<const std::int32_t> target);

}  // namespace heed
