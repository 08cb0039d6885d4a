// Entropy and divergence of next-token distributions, against values worked out by hand.
#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace heed {
namespace {

std::vector<Candidate> candidates(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return trace_candidates(logits, {}, {});
}

TEST(CandidateMeasures, EntropyIsThatOfTheModelsDistribution) {
  EXPECT_NEAR(entropy_nats(candidates({0.25, 0.25, 0.25, 0.25})), std::log(4.0), 1e-6);
  EXPECT_NEAR(entropy_nats(candidates({0.5, 0.25, 0.25})), 1.5 * std::log(2.0), 1e-6);
  EXPECT_NEAR(entropy_nats(candidates({1.0, 0.0})), 0, 1e-12);
}

// The candidates of the two are in different orders: tokens are compared, not places.
TEST(CandidateMeasures, DivergenceComparesTokens) {
  const auto before = candidates({0.5, 0.3, 0.2});
  const auto after = candidates({0.2, 0.5, 0.3});
  const double expected =
      0.5 * std::log(0.5 / 0.2) + 0.3 * std::log(0.3 / 0.5) + 0.2 * std::log(0.2 / 0.3);
  EXPECT_NEAR(divergence_nats(before, after), expected, 1e-6);
  EXPECT_EQ(divergence_nats(before, before), 0);
  EXPECT_EQ(divergence_nats(candidates({0.5, 0.5}), candidates({1.0, 0.0})),
            std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace heed
