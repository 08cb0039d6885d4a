// Log probabilities of given tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/transformer.h"

namespace heed {

struct LogProbability {
  std::int32_t token = 0;
  float value = 0;  // natural logarithm
};

struct TokenScore {
  LogProbability token;
  std::vector<LogProbability> likeliest;  // at its position; the lower id first among equals
};

// Scores `token` from logits (V), with the `count` most likely tokens.
TokenScore score_token(std::span<const float> logits, std::int32_t token, std::int64_t count);

struct ScoredText {
  std::vector<TokenScore> scores;  // of tokens[1:]
  std::vector<float> next_logits;  // (V), of the next token
};

// The batch (B, T) in which a text of `length` tokens, at most `context`, is scored. The order of
// summation depends on the shape of a pass (edge rows of products, attention of many queries), so
// texts are padded to fixed shapes: log probabilities are then bit-identical.
struct ScoringShape {
  std::int64_t batch;
  std::int64_t positions;
};
ScoringShape scoring_shape(std::int64_t length, std::int64_t context);

// The log probabilities equal the losses of Transformer::loss() for a batch of that shape.
ScoredText score_text(const Transformer& model, std::span<const std::int32_t> tokens,
                      std::int64_t count);

}  // namespace heed
