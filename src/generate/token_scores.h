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

// Of tokens[1:]. The logarithms are those of the loss that Gpt::loss gives for a batch of whole
// contexts, to the bit: products of few rows are summed in another order, so that fewer than
// least_scored_rows are never made.
inline constexpr std::int64_t least_scored_rows = 65;
std::vector<TokenScore> score_tokens(const Gpt& gpt, std::span<const std::int32_t> tokens,
                                     std::int64_t count);

// The same from the final norm (N, C) of a pass of N rows, at least least_scored_rows of them, that
// begins with tokens (T).
std::vector<TokenScore> score_tokens(const Gpt& gpt, View<const float> final_norm,
                                     std::span<const std::int32_t> tokens, std::int64_t count);

}  // namespace heed
