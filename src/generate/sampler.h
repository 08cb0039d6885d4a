// From logits to the next token.
//
// The steps and their order are llama.cpp's: penalties on what was said lately; top-k; top-p;
// min-p; temperature; a draw from what is left. Top-p and min-p therefore look at probabilities
// before the temperature, so that a high temperature does not let unlikely tokens back in.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace heed {

struct SamplingOptions {
  double temperature = 0.8;         // divides the logits; 0 is greedy
  std::int64_t top_k = 40;          // keep the k likeliest; 0 keeps all
  double top_p = 0.95;              // keep the fewest whose probabilities reach p; 1 keeps all
  double min_p = 0.05;              // keep those at least this fraction of the likeliest; 0: all
  double repeat_penalty = 1.0;      // logits of recent tokens: divided if positive, else multiplied
  std::int64_t repeat_last_n = 64;  // recent tokens that penalties look at; -1: all, 0: none
  double presence_penalty = 0.0;    // taken from the logit of a recent token, once
  double frequency_penalty = 0.0;   // taken once for each time that it occurs
  std::uint64_t seed = 0;
  bool greedy = false;  // always the likeliest token, the lowest id among equals

  bool is_greedy() const { return greedy || temperature == 0.0; }

  // Throws Error{invalid_argument} naming the first value that cannot be.
  void validate() const;
};

// Draws tokens; the sequence is a pure function of options, logits and histories.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);

  // `history` is everything read and drawn so far, the latest last. −∞ forbids a token. Throws
  // Error{diverged} for logits that are NaN or +∞, or all −∞.
  std::int32_t sample(std::span<const float> logits, std::span<const std::int32_t> history);

 private:
  SamplingOptions options_;
  RandomStream random_;
};

// What one token's probability is after each step; 0 from the step on that removed it.
enum class SamplingStage { model, penalties, top_k, top_p, min_p, temperature };
inline constexpr std::size_t sampling_stage_count = 6;

// "model", "penalties", "top-k", "top-p", "min-p", "temperature".
const char* sampling_stage_name(SamplingStage stage);

struct Candidate {
  std::int32_t token = 0;
  std::int64_t rank = 0;       // 1 is the likeliest after penalties
  double logit = 0;            // the model's
  double penalized_logit = 0;  // after penalties
  double scaled_logit = 0;     // penalized_logit / temperature; penalized_logit itself when greedy
  std::array<double, sampling_stage_count> probability_after{};
  // The step that removed it; SamplingStage::model when none did. Greedy sampling removes all but
  // the first at SamplingStage::temperature.
  SamplingStage removed_by = SamplingStage::model;

  bool kept() const { return removed_by == SamplingStage::model; }
  double probability(SamplingStage after) const {
    return probability_after[static_cast<std::size_t>(after)];
  }
};

// Every token of the vocabulary, the likeliest first, with what the sampler does to it. The
// probability after SamplingStage::temperature is that of being drawn.
std::vector<Candidate> trace_candidates(std::span<const float> logits,
                                        const SamplingOptions& options,
                                        std::span<const std::int32_t> history);

}  // namespace heed
