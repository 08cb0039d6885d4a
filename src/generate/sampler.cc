#include "generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "generate/filters.h"

namespace heed {
namespace {

// The random stream of token sampling.
constexpr std::uint64_t sampling_stream = 0x73616D706C65U;  // "sample"

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

Sampler::Sampler(const SamplingOptions& options)
    : options_(options), random_(options.seed, sampling_stream) {
  options_.validate();
}

std::int32_t Sampler::sample(std::span<const float> logits, std::span<const std::int32_t> history) {
  Ranking ranking = penalized_ranking(logits, options_, history);
  if (options_.is_greedy()) return ranking[0].token;
  const std::size_t kept = apply_filters(ranking, options_).back();

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

  std::vector<Candidate> candidates(ranking.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const ScoredToken& ranked = ranking[i];
    Candidate& candidate = candidates[i];
    candidate.token = ranked.token;
    candidate.rank = static_cast<std::int64_t>(i) + 1;
    candidate.logit = logits[static_cast<std::size_t>(ranked.token)];
    candidate.penalized_logit = ranked.logit;
    candidate.scaled_logit = scaled(ranked.logit, options);
    const auto* const removed = std::ranges::find_if(kept, [i](std::size_t n) { return i >= n; });
    if (removed != kept.end()) {
      candidate.removed_by = static_cast<SamplingStage>(removed - kept.begin());
    }
  }
  for (std::size_t i = 0; i < sampling_stage_count; ++i) {
    const auto stage = static_cast<SamplingStage>(i);
    fill_probabilities(candidates, kept[i], stage, [stage](const Candidate& candidate) {
      return stage == SamplingStage::model         ? candidate.logit
             : stage == SamplingStage::temperature ? candidate.scaled_logit
                                                   : candidate.penalized_logit;
    });
  }
  return candidates;
}

double entropy_nats(std::span<const Candidate> candidates) {
  double entropy = 0;
  for (const Candidate& candidate : candidates) {
    const double p = candidate.probability(SamplingStage::model);
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

double divergence_nats(std::span<const Candidate> before, std::span<const Candidate> after) {
  check(before.size() == after.size(), "distributions over one vocabulary");
  std::vector<double> probabilities(after.size());
  for (const Candidate& candidate : after) {
    probabilities.at(static_cast<std::size_t>(candidate.token)) =
        candidate.probability(SamplingStage::model);
  }
  double divergence = 0;
  for (const Candidate& candidate : before) {
    const double p = candidate.probability(SamplingStage::model);
    const double q = probabilities.at(static_cast<std::size_t>(candidate.token));
    if (p > 0) divergence += p * std::log(p / q);
  }
  return divergence;
}

}  // namespace heed
