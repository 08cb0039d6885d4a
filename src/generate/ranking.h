// Tokens in descending order of logits, sorted lazily.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

struct ScoredToken {
  double logit = 0;
  std::int32_t token = 0;
};

class Ranking {
 public:
  // One entry for each token, in the order of ids.
  explicit Ranking(std::vector<ScoredToken> tokens) : tokens_(std::move(tokens)) {}

  std::size_t size() const { return tokens_.size(); }

  // The token of rank `rank`, from 0; among equal logits the lower id comes first.
  const ScoredToken& operator[](std::size_t rank) {
    if (rank >= sorted_) sort_beyond(rank);
    return tokens_[rank];
  }

  // All tokens, in an unspecified but deterministic order.
  std::span<const ScoredToken> all() const { return tokens_; }

 private:
  void sort_beyond(std::size_t rank);

  std::vector<ScoredToken> tokens_;
  std::size_t sorted_ = 0;  // length of the sorted prefix
};

}  // namespace heed
