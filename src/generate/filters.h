// From logits to the tokens that may be sampled: a ranking, penalties, and filters of it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "heed/sampling.h"

namespace heed {

struct ScoredToken {
  double logit = 0;
  std::int32_t token = 0;
};

// Tokens in descending order of logits, sorted lazily.
class Ranking {
 public:
  // One entry for each token, in the order of ids.
  explicit Ranking(std::vector<ScoredToken> tokens) : tokens_(std::move(tokens)) {}

  std::size_t size() const { return tokens_.size(); }

  // The token of rank `rank`, from 0; among equal logits the lower id comes first.
  const ScoredToken& operator[](std::size_t rank) {
    if (rank >= sorted_) sort_through(rank);
    return tokens_[rank];
  }

  // All tokens, in an unspecified but deterministic order.
  std::span<const ScoredToken> all() const { return tokens_; }

 private:
  void sort_through(std::size_t rank);

  std::vector<ScoredToken> tokens_;
  std::size_t sorted_ = 0;  // length of the sorted prefix
};

// The logits after penalties. Throws what Sampler::sample throws.
Ranking penalized_ranking(std::span<const float> logits, const SamplingOptions& options,
                          std::span<const std::int32_t> history);

// How many tokens are left after each stage: a prefix of the ranking that is not empty. Greedy
// sampling leaves one after SamplingStage::temperature.
using KeptCounts = std::array<std::size_t, sampling_stage_count>;
KeptCounts apply_filters(Ranking& ranking, const SamplingOptions& options);

}  // namespace heed
