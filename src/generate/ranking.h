// Tokens by their logits, the largest first, sorted only as far as somebody looks.
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
  // One for each token, in the order of ids.
  explicit Ranking(std::vector<ScoredToken> tokens) : tokens_(std::move(tokens)) {}

  std::size_t size() const { return tokens_.size(); }

  // The token with `rank` others before it; among equal logits the lower id comes first.
  const ScoredToken& operator[](std::size_t rank) {
    if (rank >= sorted_) sort_beyond(rank);
    return tokens_[rank];
  }

  // All of them, in no particular order but the same one every time.
  std::span<const ScoredToken> all() const { return tokens_; }

 private:
  void sort_beyond(std::size_t rank);

  std::vector<ScoredToken> tokens_;
  std::size_t sorted_ = 0;  // the first so many are in place
};

}  // namespace heed
