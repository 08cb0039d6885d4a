#include "generate/filters.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"

namespace heed {
namespace {

double penalized(double logit, std::int64_t occurrences, const SamplingOptions& options) {
  const double scaled = logit > 0 ? logit / options.repeat_penalty : logit * options.repeat_penalty;
  return scaled - options.presence_penalty -
         static_cast<double>(occurrences) * options.frequency_penalty;
}

bool penalizes(const SamplingOptions& options) {
  return options.repeat_last_n != 0 &&
         (options.repeat_penalty != 1.0 || options.presence_penalty != 0.0 ||
          options.frequency_penalty != 0.0);
}

std::span<const std::int32_t> recent(std::span<const std::int32_t> history, std::int64_t last_n) {
  if (last_n < 0) return history;
  return history.last(std::min(history.size(), static_cast<std::size_t>(last_n)));
}

std::size_t keep_top_k(const Ranking& ranking, std::int64_t top_k) {
  return top_k == 0 ? ranking.size() : std::min(ranking.size(), static_cast<std::size_t>(top_k));
}

// The shortest prefix of the first `kept` with at least the share top_p of their probability.
std::size_t keep_top_p(Ranking& ranking, std::size_t kept, double top_p) {
  if (top_p >= 1.0) return kept;
  const double largest = ranking[0].logit;
  double total = 0;
  if (kept == ranking.size()) {
    for (const ScoredToken& scored : ranking.all()) total += std::exp(scored.logit - largest);
  } else {
    for (std::size_t rank = 0; rank < kept; ++rank) {
      total += std::exp(ranking[rank].logit - largest);
    }
  }
  double sum = 0;
  for (std::size_t rank = 0; rank < kept; ++rank) {
    sum += std::exp(ranking[rank].logit - largest);
    if (sum >= top_p * total) return rank + 1;
  }
  return kept;
}

// probability >= min_p · largest probability, compared as logits.
std::size_t keep_min_p(Ranking& ranking, std::size_t kept, double min_p) {
  if (min_p <= 0.0) return kept;
  const double threshold = ranking[0].logit + std::log(min_p);
  std::size_t rank = 1;
  while (rank < kept && ranking[rank].logit >= threshold) ++rank;
  return rank;
}

}  // namespace

Ranking penalized_ranking(std::span<const float> logits, const SamplingOptions& options,
                          std::span<const std::int32_t> history) {
  std::vector<ScoredToken> tokens(logits.size());
  bool any_finite = false;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const double logit = logits[id];
    require(logit < INFINITY, ErrorCode::diverged,
            "the logit of token {} is {}, not a finite number: the model's weights are damaged or "
            "its training diverged",
            id, logit);
    any_finite |= logit > -INFINITY;
    tokens[id] = {logit, static_cast<std::int32_t>(id)};
  }
  require(any_finite, ErrorCode::diverged, "all {} logits are -inf: there is no token to sample",
          logits.size());
  if (penalizes(options)) {
    std::unordered_map<std::int32_t, std::int64_t> occurrences;
    for (const std::int32_t token : recent(history, options.repeat_last_n)) ++occurrences[token];
    for (const auto& [token, count] : occurrences) {
      // A history may contain tokens that must not be sampled.
      if (token < 0 || static_cast<std::size_t>(token) >= tokens.size()) continue;
      double& logit = tokens[static_cast<std::size_t>(token)].logit;
      logit = penalized(logit, count, options);
    }
  }
  return Ranking(std::move(tokens));
}

KeptCounts apply_filters(Ranking& ranking, const SamplingOptions& options) {
  KeptCounts kept;
  kept.top_k = keep_top_k(ranking, options.top_k);
  kept.top_p = keep_top_p(ranking, kept.top_k, options.top_p);
  kept.min_p = keep_min_p(ranking, kept.top_p, options.min_p);
  return kept;
}

}  // namespace heed
