#include "generate/sampler.h"

#include <cmath>

#include "base/error.h"
#include "generate/filters.h"

namespace heed {
namespace {

// The random stream of token sampling.
constexpr std::uint64_t sampling_stream = 0x73616D706C65U;  // "sample"

void require_between(double value, double least, double most, const char* name) {
  require(value >= least && value <= most, ErrorCode::invalid_argument,
          "{} must be between {} and {}, not {}", name, least, most, value);
}

void require_finite(double value, const char* name) {
  require(std::isfinite(value), ErrorCode::invalid_argument, "{} must be finite, not {}", name,
          value);
}

double scaled(double logit, const SamplingOptions& options) {
  return options.is_greedy() ? logit : logit / options.temperature;
}

// Fills the probabilities after one stage: a softmax of the first `kept` candidates.
template <class Logit>
void fill_probabilities(std::vector<Candidate>& candidates, std::size_t kept, SamplingStage stage,
                        Logit&& logit) {
  double largest = -INFINITY;
  for (std::size_t i = 0; i < kept; ++i) largest = std::max(largest, logit(candidates[i]));
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) total += std::exp(logit(candidates[i]) - largest);
  for (std::size_t i = 0; i < kept; ++i) {
    candidates[i].probability_after[static_cast<std::size_t>(stage)] =
        std::exp(logit(candidates[i]) - largest) / total;
  }
}

}  // namespace

const char* sampling_stage_name(SamplingStage stage) {
  switch (stage) {
    case SamplingStage::model: return "model";
    case SamplingStage::penalties: return "penalties";
    case SamplingStage::top_k: return "top-k";
    case SamplingStage::top_p: return "top-p";
    case SamplingStage::min_p: return "min-p";
    case SamplingStage::temperature: return "temperature";
  }
  return "unknown";
}

void SamplingOptions::validate() const {
  require(std::isfinite(temperature) && temperature >= 0, ErrorCode::invalid_argument,
          "the temperature must be 0 (greedy) or more, not {}", temperature);
  require(top_k >= 0, ErrorCode::invalid_argument, "top-k must be 0 (off) or more, not {}", top_k);
  require_between(top_p, 0, 1, "top-p");
  require_between(min_p, 0, 1, "min-p");
  require(std::isfinite(repeat_penalty) && repeat_penalty > 0, ErrorCode::invalid_argument,
          "the repeat penalty must be positive (1 is off), not {}", repeat_penalty);
  require(repeat_last_n >= -1, ErrorCode::invalid_argument,
          "repeat_last_n must be 0 or more, or -1 for all tokens, not {}", repeat_last_n);
  require_finite(presence_penalty, "the presence penalty");
  require_finite(frequency_penalty, "the frequency penalty");
}

Sampler::Sampler(const SamplingOptions& options)
    : options_(options), random_(options.seed, sampling_stream) {
  options_.validate();
}

std::int32_t Sampler::sample(std::span<const float> logits, std::span<const std::int32_t> history) {
  Ranking ranking = penalized_ranking(logits, options_, history);
  if (options_.is_greedy()) return ranking[0].token;
  const std::size_t kept = apply_filters(ranking, options_).min_p;

  // 1: weights relative to the most likely token, and their sum
  const double largest = ranking[0].logit;
  const auto weight = [&](std::size_t rank) {
    return std::exp((ranking[rank].logit - largest) / options_.temperature);
  };
  double total = 0;
  for (std::size_t rank = 0; rank < kept; ++rank) total += weight(rank);
  // 2: the token selected by the random number
  const double drawn = random_.uniform() * total;
  double sum = 0;
  std::int32_t token = ranking[0].token;
  for (std::size_t rank = 0; rank < kept && sum <= drawn; ++rank) {
    const double share = weight(rank);
    if (share > 0) token = ranking[rank].token;  // never a forbidden one
    sum += share;
  }
  return token;
}

std::vector<Candidate> trace_candidates(std::span<const float> logits,
                                        const SamplingOptions& options,
                                        std::span<const std::int32_t> history) {
  options.validate();
  Ranking ranking = penalized_ranking(logits, options, history);
  const KeptCounts kept = apply_filters(ranking, options);
  const std::size_t drawable = options.is_greedy() ? 1 : kept.min_p;

  std::vector<Candidate> candidates(ranking.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const ScoredToken& ranked = ranking[i];
    Candidate& candidate = candidates[i];
    candidate.token = ranked.token;
    candidate.rank = static_cast<std::int64_t>(i) + 1;
    candidate.logit = logits[static_cast<std::size_t>(ranked.token)];
    candidate.penalized_logit = ranked.logit;
    candidate.scaled_logit = scaled(ranked.logit, options);
    candidate.removed_by = i < drawable     ? SamplingStage::model
                           : i < kept.min_p ? SamplingStage::temperature
                           : i < kept.top_p ? SamplingStage::min_p
                           : i < kept.top_k ? SamplingStage::top_p
                                            : SamplingStage::top_k;
  }
  const auto penalized_logit = [](const Candidate& candidate) { return candidate.penalized_logit; };
  fill_probabilities(candidates, candidates.size(), SamplingStage::model,
                     [](const Candidate& candidate) { return candidate.logit; });
  fill_probabilities(candidates, candidates.size(), SamplingStage::penalties, penalized_logit);
  fill_probabilities(candidates, kept.top_k, SamplingStage::top_k, penalized_logit);
  fill_probabilities(candidates, kept.top_p, SamplingStage::top_p, penalized_logit);
  fill_probabilities(candidates, kept.min_p, SamplingStage::min_p, penalized_logit);
  fill_probabilities(candidates, drawable, SamplingStage::temperature,
                     [](const Candidate& candidate) { return candidate.scaled_logit; });
  return candidates;
}

}  // namespace heed
