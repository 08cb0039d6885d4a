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

// Logits of at least `threshold`, and the largest.
std::size_t keep_above(Ranking& ranking, std::size_t kept, double threshold) {
  std::size_t rank = 1;
  while (rank < kept && ranking[rank].logit >= threshold) ++rank;
  return rank;
}

// Standard deviations are those of all logits but of forbidden tokens, −∞.
std::size_t keep_top_n_sigma(Ranking& ranking, std::size_t kept, const SamplingOptions& options) {
  if (options.top_n_sigma <= 0.0) return kept;
  double count = 0, mean = 0, squares = 0;  // Welford's sums
  for (const ScoredToken& scored : ranking.all()) {
    if (!std::isfinite(scored.logit)) continue;
    const double difference = scored.logit - mean;
    mean += difference / ++count;
    squares += difference * (scored.logit - mean);
  }
  return keep_above(ranking, kept,
                    ranking[0].logit - options.top_n_sigma * std::sqrt(squares / count));
}

std::size_t keep_top_k(Ranking&, std::size_t kept, const SamplingOptions& options) {
  return options.top_k <= 0 ? kept : std::min(kept, static_cast<std::size_t>(options.top_k));
}

// The shortest prefix of the first `kept` with at least the share top_p of their probability.
std::size_t keep_top_p(Ranking& ranking, std::size_t kept, const SamplingOptions& options) {
  if (options.top_p >= 1.0) return kept;
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
    if (sum >= options.top_p * total) return rank + 1;
  }
  return kept;
}

// probability >= min_p · largest probability, compared as logits.
std::size_t keep_min_p(Ranking& ranking, std::size_t kept, const SamplingOptions& options) {
  if (options.min_p <= 0.0) return kept;
  return keep_above(ranking, kept, ranking[0].logit + std::log(options.min_p));
}

// Each returns how many of the first `kept` tokens it keeps.
struct Filter {
  SamplingStage stage;
  std::size_t (*keep)(Ranking& ranking, std::size_t kept, const SamplingOptions& options);
};

// In the order of the stages.
constexpr Filter filters[] = {{SamplingStage::top_n_sigma, keep_top_n_sigma},
                              {SamplingStage::top_k, keep_top_k},
                              {SamplingStage::top_p, keep_top_p},
                              {SamplingStage::min_p, keep_min_p}};

}  // namespace

void Ranking::sort_through(std::size_t rank) {
  // Doubling the prefix keeps each extension linear in the vocabulary, and there are few.
  constexpr std::size_t min_sorted = 64;
  const std::size_t wanted =
      std::min(std::max({min_sorted, 2 * sorted_, rank + 1}), tokens_.size());
  const auto at = [&](std::size_t i) { return tokens_.begin() + static_cast<std::ptrdiff_t>(i); };
  std::partial_sort(at(sorted_), at(wanted), tokens_.end(),
                    [](const ScoredToken& a, const ScoredToken& b) {
                      return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
                    });
  sorted_ = wanted;
}

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
  KeptCounts counts;
  std::size_t kept = ranking.size();
  counts.fill(kept);
  for (const Filter& filter : filters) {
    kept = filter.keep(ranking, kept, options);
    counts[static_cast<std::size_t>(filter.stage)] = kept;
  }
  counts.back() = options.is_greedy() ? 1 : kept;
  return counts;
}

}  // namespace heed
