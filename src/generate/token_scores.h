// How likely a model finds tokens that are there already.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/gpt.h"

namespace heed {

struct LogProbability {
  std::int32_t token = 0;
  float value = 0;  // natural logarithm
};

struct TokenScore {
  LogProbability token;
  std::vector<LogProbability> likeliest;  // in its place; of equal ones the lower id first
};

// Of `token` where the model gave logits (V), and of the `count` likeliest.
TokenScore score_token(std::span<const float> logits, std::int32_t token, std::int64_t count);

struct ScoredText {
  std::vector<TokenScore> scores;  // of tokens[1:]
  std::vector<float> next_logits;  // (V), of what follows
};

// The batch (B, T) in which a text of `length` tokens, at most `context`, is scored. Rows at the
// edge of a product, and attention of many queries, are summed in other orders, so that a logarithm
// is the same to the bit only in passes of one shape: longer than the text, with the edge
// elsewhere.
struct ScoringShape {
  std::int64_t batch;
  std::int64_t positions;
};
ScoringShape scoring_shape(std::int64_t length, std::int64_t context);

// The logarithms are those of the loss that Gpt::loss gives for a batch of that shape.
ScoredText score_text(const Gpt& gpt, std::span<const std::int32_t> tokens, std::int64_t count);

}  // namespace heed
