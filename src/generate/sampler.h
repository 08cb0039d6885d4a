// Sampling of the next token from logits.
//
// The steps and their order are those of llama.cpp: penalties on recent tokens; top-k; top-p;
// min-p; temperature; sampling. Top-p and min-p use probabilities before the temperature, so a high
// temperature does not readmit unlikely tokens.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace heed {

struct SamplingOptions {
  double temperature = 0.8;         // divides the logits; 0: greedy
  std::int64_t top_k = 40;          // keep the k most likely tokens; 0: all
  double top_p = 0.95;              // keep the fewest tokens with total probability p; 1: all
  double min_p = 0.05;              // keep tokens with at least this share of the highest; 0: all
  double repeat_penalty = 1.0;      // logits of recent tokens: divided if positive, else multiplied
  std::int64_t repeat_last_n = 64;  // tokens that penalties consider; -1: all, 0: none
  double presence_penalty = 0.0;    // subtracted once from the logit of a recent token
  double frequency_penalty = 0.0;   // subtracted for each occurrence of it
  std::uint64_t seed = 0;
  bool greedy = false;  // always the most likely token, the lowest id among equals

  bool is_greedy() const { return greedy || temperature == 0.0; }

  // Throws Error{invalid_argument} naming the first invalid value.
  void validate() const;
};

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

// A token's probability after each step; 0 from the step that removed it on.
enum class SamplingStage { model, penalties, top_k, top_p, min_p, temperature };
inline constexpr std::size_t sampling_stage_count = 6;

// "model", "penalties", "top-k", "top-p", "min-p", "temperature".
const char* sampling_stage_name(SamplingStage stage);

struct Candidate {
  std::int32_t token = 0;
  std::int64_t rank = 0;       // 1: the most likely after penalties
  double logit = 0;            // of the model
  double penalized_logit = 0;  // after penalties
  double scaled_logit = 0;     // penalized_logit / temperature; penalized_logit if greedy
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

}  // namespace heed
