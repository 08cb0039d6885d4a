// Sampling of the next token from logits, by the options of heed/sampling.h; and what became of
// every candidate.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "heed/sampling.h"

namespace heed {

// Samples tokens; the sequence is a pure function of options, logits and histories.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);

  // `history` holds the prompt and all sampled tokens, in order. A logit of −∞ forbids a token.
  // Throws Error{diverged} for logits that are NaN or +∞, or all −∞.
  std::int32_t sample(std::span<const float> logits, std::span<const std::int32_t> history);

 private:
  SamplingOptions options_;
  RandomStream random_;
};

struct Candidate {
  std::int32_t token = 0;
  std::int64_t rank = 0;       // 1: the most likely after penalties
  double logit = 0;            // of the model
  double penalized_logit = 0;  // after penalties
  double scaled_logit = 0;     // penalized_logit / temperature; penalized_logit if greedy
  // A token's probability after each stage; 0 from the one that removed it on.
  std::array<double, sampling_stage_count> probability_after{};
  // The step that removed it; SamplingStage::model if none did. Greedy sampling removes all but the
  // first at SamplingStage::temperature.
  SamplingStage removed_by = SamplingStage::model;

  bool kept() const { return removed_by == SamplingStage::model; }
  double probability(SamplingStage after) const {
    return probability_after[static_cast<std::size_t>(after)];
  }
};

// Every token of the vocabulary, most likely first, with the effect of each step. The probability
// after SamplingStage::temperature is the sampling probability.
std::vector<Candidate> trace_candidates(std::span<const float> logits,
                                        const SamplingOptions& options,
                                        std::span<const std::int32_t> history);

// In nats; between 0, one token being certain, and the logarithm of the number of candidates.
double entropy_nats(std::span<const Candidate> candidates);

// KL(before ‖ after) in nats, infinite where `after` rules out what `before` does not. Both are of
// the same vocabulary, in any order: token ids are below their number.
double divergence_nats(std::span<const Candidate> before, std::span<const Candidate> after);

}  // namespace heed
