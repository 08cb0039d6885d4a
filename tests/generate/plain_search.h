// Searches written as plainly as possible, by full passes: what a beam search must find.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "generate/beam_search.h"
#include "generate/toy_translator.h"

namespace heed::testing {

struct PlainHypothesis {
  std::vector<std::int32_t> tokens;
  double log_probability = 0;

  double score(double penalty) const {
    return log_probability / std::pow(static_cast<double>(tokens.size()), penalty);
  }
  PlainHypothesis with(std::int32_t token, double added) const {
    PlainHypothesis longer{tokens, log_probability + added};
    longer.tokens.push_back(token);
    return longer;
  }
};

inline void sort_by_score(std::vector<PlainHypothesis>& hypotheses, double penalty) {
  std::ranges::stable_sort(hypotheses, [&](const auto& a, const auto& b) {
    return a.score(penalty) > b.score(penalty);
  });
}

inline std::vector<PlainHypothesis> continuations(const std::vector<PlainHypothesis>& running,
                                                  UncachedNext& next) {
  std::vector<PlainHypothesis> all;
  for (const PlainHypothesis& hypothesis : running) {
    const std::vector<double>& added = next(hypothesis.tokens);
    for (std::int32_t token = 0; token < std::ssize(added); ++token) {
      const double log_probability = added[static_cast<std::size_t>(token)];
      if (token != toy_padding && std::isfinite(log_probability)) {
        all.push_back(hypothesis.with(token, log_probability));
      }
    }
  }
  return all;
}

// Every output of at most `longest` tokens, the best first.
inline std::vector<PlainHypothesis> exhaustive_search(UncachedNext& next, std::int64_t longest,
                                                      double penalty) {
  std::vector<PlainHypothesis> running{{}}, found;
  for (std::int64_t length = 1; length <= longest; ++length) {
    std::vector<PlainHypothesis> longer;
    for (const PlainHypothesis& hypothesis : continuations(running, next)) {
      const bool ends = hypothesis.tokens.back() == toy_end || length == longest;
      (ends ? found : longer).push_back(hypothesis);
    }
    running = longer;
  }
  sort_by_score(found, penalty);
  return found;
}

// A hypothesis that was looked at, and what became of it.
struct PlainCandidate {
  PlainHypothesis hypothesis;
  BeamFate fate = BeamFate::dropped;
};

// `looked_at`, if any, receives the candidates of each step, the likeliest first.
inline std::vector<PlainHypothesis> plain_beam_search(
    UncachedNext& next, std::int64_t longest, double penalty, std::size_t beams,
    std::vector<PlainCandidate>* looked_at = nullptr) {
  std::vector<PlainHypothesis> running{{}}, ended;
  std::vector<PlainCandidate> all;
  for (std::int64_t length = 1; length <= longest; ++length) {
    std::vector<PlainHypothesis> candidates = continuations(running, next);
    sort_by_score(candidates, 0.0);
    running.clear();
    const std::size_t before = all.size();
    for (std::size_t rank = 0; rank < std::min(2 * beams, candidates.size()); ++rank) {
      BeamFate fate = BeamFate::dropped;
      if (candidates[rank].tokens.back() != toy_end) {
        if (running.size() < beams) fate = BeamFate::kept;
      } else if (rank < beams) {
        fate = BeamFate::finished;
      }
      if (fate == BeamFate::kept) running.push_back(candidates[rank]);
      if (fate == BeamFate::finished) ended.push_back(candidates[rank]);
      all.push_back({candidates[rank], fate});
    }
    sort_by_score(ended, penalty);
    if (ended.size() > beams) ended.resize(beams);
    if (length < longest && ended.size() == beams &&
        ended.back().score(penalty) >= candidates.front().score(penalty)) {
      running.clear();
      for (std::size_t i = before; i < all.size(); ++i) {
        if (all[i].fate == BeamFate::kept) all[i].fate = BeamFate::dropped;
      }
      break;
    }
  }
  ended.insert(ended.end(), running.begin(), running.end());
  sort_by_score(ended, penalty);
  ended.resize(std::min(beams, ended.size()));
  if (looked_at != nullptr) *looked_at = std::move(all);
  return ended;
}

inline void expect_found(const std::vector<TokenHypothesis>& found,
                         const std::vector<PlainHypothesis>& expected, double penalty) {
  ASSERT_LE(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].tokens) << i;
    // f32 logits of about 1 and sums of a few of them
    EXPECT_NEAR(found[i].log_probability, expected[i].log_probability, 1e-4);
    EXPECT_NEAR(found[i].score, expected[i].score(penalty), 1e-4);
    EXPECT_EQ(found[i].finished, expected[i].tokens.back() == toy_end);
  }
}

inline void expect_same(const std::vector<TokenHypothesis>& a,
                        const std::vector<TokenHypothesis>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tokens, b[i].tokens);
    EXPECT_EQ(a[i].log_probability, b[i].log_probability);
    EXPECT_EQ(a[i].score, b[i].score);
    EXPECT_EQ(a[i].finished, b[i].finished);
  }
}

inline ToySources few_sources() { return {{4, 1, 2, 0}, {3, 0}, {2, 2, 1, 4, 3, 1, 0}, {1, 3, 0}}; }

inline std::vector<UncachedNext> uncached(const Transformer& model, const ToySources& sources) {
  std::vector<UncachedNext> next;
  for (std::int64_t b = 0; b < sources.count(); ++b) next.emplace_back(model, sources.source(b));
  return next;
}

}  // namespace heed::testing
