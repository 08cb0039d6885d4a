#include "model/vocabulary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/expect_error.h"
#include "base/random.h"

namespace heed {
namespace {

struct LossRows {
  static constexpr std::int64_t rows = 37, channels = 12, vocabulary = 29;

  LossRows() {
    RandomStream random(5, 0);
    for (float& value : x.span()) value = static_cast<float>(random.normal());
    for (float& value : weight.span()) value = static_cast<float>(random.normal());
    for (std::int32_t& target : targets.span()) {
      target = static_cast<std::int32_t>(random.below(vocabulary));
    }
    targets[4] = kernels::ignored_target;
  }
  VocabularyLoss::Unembedding unembedding() const { return {.weight = weight}; }

  Tensor<float> x{Shape{rows, channels}}, weight{Shape{vocabulary, channels}};
  Tensor<float> losses{Shape{rows}}, d_x{Shape{rows, channels}};
  Tensor<float> d_weight{Shape{vocabulary, channels}};
  Tensor<std::int32_t> targets{Shape{rows}};
};

TEST(VocabularyLoss, SmoothingLeavesTheReportedLossAsItIs) {
  LossRows problem;
  VocabularyLoss plain(LossRows::vocabulary), smoothed(LossRows::vocabulary, 0.1F);
  const LossSum one =
      plain.forward(problem.x, problem.unembedding(), problem.targets, problem.losses);
  const LossSum other =
      smoothed.forward(problem.x, problem.unembedding(), problem.targets, problem.losses);
  EXPECT_EQ(one.sum, other.sum);
  EXPECT_EQ(one.count, LossRows::rows - 1);
  EXPECT_EQ(other.count, LossRows::rows - 1);
  EXPECT_EQ(one.smoothed, one.sum);
  // the definition, from the logits
  double expected = 0;
  for (std::int64_t n = 0; n < LossRows::rows; ++n) {
    if (problem.targets[n] == kernels::ignored_target) continue;
    double logits[LossRows::vocabulary], normaliser = 0, mean = 0;
    for (std::int64_t v = 0; v < LossRows::vocabulary; ++v) {
      logits[v] = 0;
      for (std::int64_t c = 0; c < LossRows::channels; ++c) {
        logits[v] += static_cast<double>(problem.x[n * LossRows::channels + c]) *
                     problem.weight[v * LossRows::channels + c];
      }
      normaliser += std::exp(logits[v]);
      mean += logits[v] / LossRows::vocabulary;
    }
    expected += std::log(normaliser) - 0.9 * logits[problem.targets[n]] - 0.1 * mean;
  }
  // float logits of up to 20 and their sums
  EXPECT_NEAR(other.smoothed, expected, 1e-5 * expected);
  EXPECT_NE(other.smoothed, other.sum);
}

TEST(VocabularyLoss, TheSmoothedLossIsWhatIsDifferentiated) {
  LossRows problem;
  VocabularyLoss loss(LossRows::vocabulary, 0.3F);
  const LossSum total =
      loss.forward_backward(problem.x, problem.unembedding(), problem.targets, problem.losses,
                            {.scale = 1.0F, .d_x = problem.d_x, .d_unembedding = problem.d_weight});
  EXPECT_EQ(
      total.smoothed,
      loss.forward(problem.x, problem.unembedding(), problem.targets, problem.losses).smoothed);
  double squared = 0;
  for (const float value : problem.d_x.span()) squared += static_cast<double>(value) * value;
  const std::vector<float> before(problem.x.span().begin(), problem.x.span().end());
  const auto at = [&](double move) {
    for (std::int64_t i = 0; i < problem.x.size(); ++i) {
      problem.x[i] = static_cast<float>(before[static_cast<std::size_t>(i)] +
                                        move * problem.d_x[i] / std::sqrt(squared));
    }
    return loss.forward(problem.x, problem.unembedding(), problem.targets, problem.losses).smoothed;
  };
  const double distance = 2e-2;
  // Central differences err by the third derivative · distance²; losses of about 150 in float by
  // about 1e-5 / distance.
  EXPECT_NEAR((at(distance) - at(-distance)) / (2 * distance) / std::sqrt(squared), 1.0, 2e-3);
}

TEST(VocabularyLoss, RefusesSmoothingBeyondOne) {
  testing::expect_error(
      ErrorCode::invalid_argument, [] { VocabularyLoss(10, 1.5F); }, "label smoothing is 1.5");
}

}  // namespace
}  // namespace heed
