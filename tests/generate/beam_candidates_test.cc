#include "generate/beam_candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

// All of them, sorted.
std::vector<BeamCandidate> sorted_candidates(View<const float> logits,
                                             const std::vector<double>& log_probabilities,
                                             std::int32_t forbidden) {
  std::vector<BeamCandidate> all;
  for (std::int64_t r = 0; r < logits.extent(0); ++r) {
    double sum = 0;
    for (const float logit : logits[r].span()) sum += std::exp(static_cast<double>(logit));
    for (std::int64_t v = 0; v < logits.extent(1); ++v) {
      if (v == forbidden) continue;
      all.push_back({log_probabilities[static_cast<std::size_t>(r)] + logits(r, v) - std::log(sum),
                     static_cast<std::int32_t>(v), static_cast<std::int32_t>(r)});
    }
  }
  std::ranges::sort(all, [](const auto& a, const auto& b) { return a.goes_before(b); });
  return all;
}

TEST(BeamCandidates, AreTheFirstOfAllSorted) {
  RandomStream random(2, 0);
  for (const std::int64_t vocabulary : {3, 31, 32, 33, 1000}) {
    for (const std::size_t count : {1U, 2U, 10U, 64U}) {
      Tensor<float> logits(Shape{4, vocabulary});
      for (float& logit : logits.span()) logit = static_cast<float>(8 * random.uniform() - 4);
      const std::vector<double> log_probabilities{-1.5, -1.0, -4.25, -2.0};
      std::vector<BeamCandidate> found;
      find_candidates(logits, log_probabilities, {vocabulary, 1}, count, found);
      const auto expected = sorted_candidates(logits, log_probabilities, 1);
      ASSERT_EQ(found.size(), std::min(count, expected.size()));
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].token, expected[i].token);
        EXPECT_EQ(found[i].parent, expected[i].parent);
        // log Σ exp is an f32 number of about 10
        EXPECT_NEAR(found[i].log_probability, expected[i].log_probability, 4e-6);
      }
    }
  }
}

TEST(BeamCandidates, OfEqualsTheFirstRowAndTheLowerTokenGoFirst) {
  Tensor<float> logits(Shape{2, 100});
  logits.view()(0, 70) = logits.view()(0, 40) = logits.view()(1, 3) = 2.0F;
  std::vector<BeamCandidate> found;
  find_candidates(logits, std::vector<double>{0.0, 0.0}, {100, -1}, 4, found);
  EXPECT_EQ(found[0].token, 3);  // of a row in which it has less company
  EXPECT_EQ(found[1].token, 40);
  EXPECT_EQ(found[2].token, 70);
  EXPECT_EQ(found[3].parent, 1);
  EXPECT_EQ(found[3].token, 0);
}

TEST(BeamCandidates, AreAmongTheFirstTokensWhereOthersMayNotFollow) {
  Tensor<float> logits(Shape{1, 80});
  logits.view()(0, 50) = 5.0F;
  logits.view()(0, 33) = 1.0F;
  std::vector<BeamCandidate> found;
  find_candidates(logits, std::vector<double>{0.0}, {34, -1}, 40, found);
  ASSERT_EQ(found.size(), 34U);
  EXPECT_EQ(found[0].token, 33);
  EXPECT_NEAR(found[0].log_probability, 1 - std::log(78 + std::exp(5.0) + std::exp(1.0)), 1e-6);
}

TEST(BeamCandidates, NeverHaveNoProbability) {
  Tensor<float> logits(Shape{1, 40});
  logits.fill(-INFINITY);
  logits.view()(0, 37) = 1.0F;
  std::vector<BeamCandidate> found;
  find_candidates(logits, std::vector<double>{-3.0}, {40, -1}, 4, found);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].token, 37);
  EXPECT_NEAR(found[0].log_probability, -3.0, 1e-6);
}

}  // namespace
}  // namespace heed
