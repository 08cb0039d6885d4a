#include "microscope/attention/induction.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "base/error.h"
#include "base/expect_error.h"
#include "microscope/intervene/intervention.h"
#include "support/small_model.h"

namespace heed {
namespace {

// A model with zero weights attends uniformly and predicts a uniform distribution.
TEST(Induction, OfAnUntrainedModelIsChance) {
  const Transformer transformer({.stacks = {make_gpt_config(2, 2, 16, 32, 50)}});
  const InductionMeasure measure = measure_induction(transformer, {.sequences = 2, .length = 16});
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
  EXPECT_NEAR(measure.uniform_induction, induction, 1e-12);
  EXPECT_NEAR(measure.uniform_previous, previous, 1e-12);
}

// Random weights have a largest score, but no such head; nothing is measured without one.
TEST(Induction, OfRandomModelsNamesNoHead) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    Transformer transformer({.stacks = {make_gpt_config(2, 4, 32, 64, 100)}});
    transformer.parameters().initialize(seed);
    const InductionCircuit circuit = measure_induction_circuit(transformer, {.seed = seed});
    EXPECT_FALSE(circuit.whole.induction_head()) << seed;
    EXPECT_FALSE(circuit.whole.previous_head()) << seed;
    EXPECT_FALSE(circuit.loss_without_induction_head);
    EXPECT_FALSE(circuit.loss_without_previous_edges);
  }
}

// Scores of a pattern set by an intervention.
TEST(Induction, FindsTheHeadThatAttendsAfterTheFirstOccurrence) {
  const Transformer transformer = testing::small_gpt(40);
  Tensor<float> pattern(Shape{1, 3, 20, 20});
  for (std::int64_t t = 0; t < 20; ++t) {
    pattern.view()(0, 1, t, t >= 10 ? t - 9 : t) = 1;
    pattern.view()(0, 2, t, std::max<std::int64_t>(t - 1, 0)) = 1;
  }
  std::vector<Intervention> frozen;
  frozen.push_back({{PointKind::pattern, 1}, {.heads = {1, 2}}, ReplaceWith{std::move(pattern)}});
  Interventions editor(transformer.specification(), std::move(frozen));
  const InductionMeasure measure =
      measure_induction(transformer, {.sequences = 3, .length = 10, .editor = &editor});
  EXPECT_EQ(measure.best_induction().layer, 1);
  EXPECT_EQ(measure.best_induction().head, 1);
  EXPECT_NEAR(measure.best_induction().score, 1, 1e-6);
  EXPECT_EQ(measure.best_previous().head, 2);
  EXPECT_NEAR(measure.best_previous().score, 1, 1e-6);
  EXPECT_FALSE(measure.previous_head()) << "three sequences are too few";
  const InductionMeasure more =
      measure_induction(transformer, {.sequences = 8, .length = 10, .editor = &editor});
  ASSERT_TRUE(more.previous_head());
  EXPECT_EQ(more.previous_head()->head, 2);
  // This pattern looks R - 1 back whether anything is repeated or not: by position, no induction.
  EXPECT_FALSE(more.induction_head());
}

// Makes head L1H1 attend to what followed the first occurrence, on repeated sequences alone: every
// second pass, as those before it are the shuffled control.
class AttendsBehindTheFirst final : public Editor {
 public:
  bool edits(const Point& point) const override {
    return (point.kind == PointKind::pattern && point.layer == 1) ||
           point.kind == PointKind::embedding;
  }
  bool edits_head(const Point& point, std::int64_t head) const override {
    return edits(point) && head == 1;
  }
  void edit(const EditedPoint& edited, View<float> values) override {
    if (edited.point.kind == PointKind::embedding) ++passes_;  // where every pass begins
    if (edited.point.kind != PointKind::pattern || passes_ % 2 == 1) return;
    const View<float> pattern = values[0][0];
    const std::int64_t length = pattern.extent(0) / 2;
    for (std::int64_t t = length; t < 2 * length; ++t) {
      for (std::int64_t s = 0; s <= t; ++s) pattern(t, s) = s == t - length + 1 ? 0.9F : 0;
    }
  }

 private:
  int passes_ = 0;
};

TEST(Induction, NamesAHeadThatNeedsTheRepetition) {
  const Transformer transformer = testing::small_gpt(40);
  AttendsBehindTheFirst editor;
  const InductionMeasure measure =
      measure_induction(transformer, {.sequences = 16, .length = 10, .editor = &editor});
  ASSERT_TRUE(measure.induction_head())
      << measure.best_induction().score << " " << measure.best_induction().control << " ± "
      << measure.best_induction().standard_error;
  EXPECT_EQ(measure.induction_head()->layer, 1);
  EXPECT_EQ(measure.induction_head()->head, 1);
  EXPECT_NEAR(measure.induction_head()->score, 0.9, 1e-6);
  EXPECT_LT(measure.induction_head()->control, 0.3);
}

TEST(Induction, RefusesWhatDoesNotFit) {
  const Transformer transformer = testing::small_gpt(40);
  EXPECT_THROW(measure_induction(transformer, {.length = 33}), Error);
  EXPECT_THROW(measure_induction(transformer, {.length = 1}), Error);
  EXPECT_THROW(measure_induction(transformer, {.sequences = 0}), Error);
  EXPECT_THROW(measure_induction(transformer, {.sequences = max_induction_sequences + 1}), Error);
  const std::atomic<bool> stop{true};
  testing::expect_error(
      ErrorCode::interrupted, [&] { measure_induction(transformer, {.stop = &stop}); }, "stopped");
}

TEST(Induction, FindsTheLargestRise) {
  const Jump jump = largest_jump({{100, 0.1}, {200, 0.15}, {300, 0.8}, {400, 0.95}});
  EXPECT_EQ(jump.before.step, 200);
  EXPECT_EQ(jump.after.step, 300);
  EXPECT_THROW(largest_jump({{100, 0.1}}), Error);
}

}  // namespace
}  // namespace heed
