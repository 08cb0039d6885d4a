#include "microscope/attention/induction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "microscope/intervention.h"
#include "support/small_model.h"

namespace heed {
namespace {

// A model with zero weights attends uniformly and predicts a uniform distribution.
TEST(Induction, OfAnUntrainedModelIsChance) {
  const Gpt gpt(make_gpt_config(2, 2, 16, 32, 50));
  const InductionMeasure measure = measure_induction(gpt, {.sequences = 2, .length = 16});
  EXPECT_EQ(measure.induction.size(), 4U);
  EXPECT_NEAR(measure.first_half_loss, std::log(50.0), 1e-5);
  EXPECT_NEAR(measure.repeated_half_loss, std::log(50.0), 1e-5);
  // Uniform weights over t + 1 visible tokens, averaged over the counted queries.
  double induction = 0;
  for (int t = 16; t < 32; ++t) induction += 1.0 / (t + 1) / 16;
  double previous = 0;
  for (int t = 1; t < 32; ++t) previous += 1.0 / (t + 1) / 31;
  for (const HeadScore& head : measure.induction) EXPECT_NEAR(head.score, induction, 1e-6);
  for (const HeadScore& head : measure.previous) EXPECT_NEAR(head.score, previous, 1e-6);
}

// Scores of a pattern set by an intervention.
TEST(Induction, FindsTheHeadThatAttendsAfterTheFirstOccurrence) {
  const Gpt gpt = testing::small_gpt(40);
  Tensor<float> pattern(Shape{1, 3, 20, 20});
  for (std::int64_t t = 0; t < 20; ++t) {
    pattern.view()(0, 1, t, t >= 10 ? t - 9 : t) = 1;
    pattern.view()(0, 2, t, std::max<std::int64_t>(t - 1, 0)) = 1;
  }
  std::vector<Intervention> frozen;
  frozen.push_back({{Point::pattern, 1}, {.heads = {1, 2}}, ReplaceWith{std::move(pattern)}});
  Interventions editor(gpt.config(), std::move(frozen));
  const InductionMeasure measure =
      measure_induction(gpt, {.sequences = 3, .length = 10, .editor = &editor});
  EXPECT_EQ(measure.best_induction().layer, 1);
  EXPECT_EQ(measure.best_induction().head, 1);
  EXPECT_NEAR(measure.best_induction().score, 1, 1e-6);
  EXPECT_EQ(measure.best_previous().head, 2);
  EXPECT_NEAR(measure.best_previous().score, 1, 1e-6);
}

TEST(Induction, RefusesWhatDoesNotFit) {
  const Gpt gpt = testing::small_gpt(40);
  EXPECT_THROW(measure_induction(gpt, {.length = 33}), Error);
  EXPECT_THROW(measure_induction(gpt, {.length = 1}), Error);
  EXPECT_THROW(measure_induction(gpt, {.sequences = 0}), Error);
}

TEST(Induction, FindsTheLargestRise) {
  const Jump jump = largest_jump({{100, 0.1}, {200, 0.15}, {300, 0.8}, {400, 0.95}});
  EXPECT_EQ(jump.before.step, 200);
  EXPECT_EQ(jump.after.step, 300);
  EXPECT_THROW(largest_jump({{100, 0.1}}), Error);
}

}  // namespace
}  // namespace heed
