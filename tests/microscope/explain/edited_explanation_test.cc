// Explanations of passes with interventions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "generate/random_transformer.h"
#include "microscope/explain/attribution.h"
#include "microscope/explain/logit_gradients.h"
#include "microscope/explain/logit_lens.h"
#include "microscope/explain/residual_parts.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/capture.h"

namespace heed {
namespace {

constexpr AttributionUnit units[] = {AttributionUnit::component, AttributionUnit::head,
                                     AttributionUnit::neuron, AttributionUnit::source};

// Every point but the logits.
std::vector<Point> editable_points(const StackSpecification& config) {
  std::vector<Point> points = all_points(config.layers);
  std::erase(points, Point{PointKind::logits});
  return points;
}

class EditedExplanation : public ::testing::Test {
 protected:
  RecordedPass pass_with(std::vector<Intervention> interventions) const {
    return {transformer, Texts{.source = {}, .target = tokens},
            std::make_shared<Interventions>(transformer.specification(), std::move(interventions))};
  }
  double value_of(const Attribution& attribution, const std::string& name) const {
    const auto found = std::ranges::find(attribution.terms, name, &AttributionTerm::name);
    EXPECT_NE(found, attribution.terms.end()) << name;
    return found == attribution.terms.end() ? 0 : found->value;
  }

  const Transformer transformer = testing::random_transformer(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(17, 61, 3);
  const LogitQuestion question{7, 23};
};

// The same tolerance as for unedited passes: 1e-5 of the largest term.
void expect_sum(const Attribution& attribution, double logit, const std::string& what) {
  double largest = 1;
  for (const AttributionTerm& term : attribution.terms) {
    largest = std::max(largest, std::abs(term.value));
  }
  EXPECT_NEAR(attribution.logit, logit, 1e-5) << what;
  EXPECT_NEAR(attribution.sum(), logit, 1e-5 * largest)
      << what << ", unit " << static_cast<int>(attribution.unit);
}

TEST_F(EditedExplanation, AttributionsSumToTheLogitWhereverAPassIsChanged) {
  for (const Point& point : editable_points(transformer.specification())) {
    const RecordedPass pass = pass_with({{point, {}, ScaleBy{0.5F}}});
    for (const std::int64_t position : {8, 16}) {
      const Tensor<float> logits = pass.logits(position, position + 1);
      for (const AttributionUnit unit : units) {
        expect_sum(attribute_logit(pass, question, unit, position),
                   double{logits[question.token]} - logits[*question.against], point_name(point));
      }
    }
  }
}

TEST_F(EditedExplanation, SeveralChangesStillSum) {
  const std::vector<float> vector(32, 0.25F);
  const RecordedPass pass =
      pass_with({{{PointKind::pattern, 1}, {.heads = {2}}, CutEdges{{{16, 3}, {8, 1}}}},
                 {{PointKind::residual_post, 0}, {}, AddVector{vector}},
                 {{PointKind::residual_pre, 1}, {.first_position = 4}, AddVector{vector}},
                 {{PointKind::mixed_values, 2}, {.heads = {1}}, SetZero{}},
                 {{PointKind::feed_forward_out, 2}, {}, ScaleBy{2.0F}},
                 {{PointKind::residual_post, 2}, {}, ScaleBy{-1.0F}}});
  const Tensor<float> logits = pass.logits(16, 17);
  for (const AttributionUnit unit : units) {
    const Attribution found = attribute_logit(pass, question, unit);
    expect_sum(found, double{logits[7]} - logits[23], "several");
    // Both additions to the stream between two blocks are one part.
    value_of(found, "0_resid_post_edit");
    value_of(found, "2_resid_post_edit");
    if (unit == AttributionUnit::neuron) value_of(found, "2_mlp_out_edit");
  }
}

// An added vector contributes its projection on the logit direction.
TEST_F(EditedExplanation, AnAddedVectorIsATermOfItsOwn) {
  std::vector<float> vector(32);
  for (std::size_t c = 0; c < vector.size(); ++c) vector[c] = 0.1F * static_cast<float>(c % 7);
  const RecordedPass pass = pass_with({{{PointKind::residual_mid, 1}, {}, AddVector{vector}}});
  Capture capture({Point{PointKind::final_scale}});
  pass.replay(capture);
  const double scale = capture.at({PointKind::final_scale}).view()(0, 16, 0);
  const double expected = logit_direction(transformer, question).project(vector) / scale;
  ASSERT_GT(std::abs(expected), 1e-3);
  const Attribution found = attribute_logit(pass, question, AttributionUnit::component);
  EXPECT_NEAR(value_of(found, "1_resid_mid_edit"), expected, 1e-5);
}

TEST_F(EditedExplanation, AnAblatedHeadHasNoSources) {
  const RecordedPass pass = pass_with({{{PointKind::mixed_values, 1}, {.heads = {2}}, SetZero{}}});
  const Attribution found = attribute_logit(pass, question, AttributionUnit::source);
  EXPECT_EQ(value_of(found, "L1H2"), 0);
  for (const AttributionTerm& term : found.terms) {
    if (term.layer == 1 && term.index == 2) {
      EXPECT_EQ(term.source, -1) << term.name();
    }
  }
  value_of(found, "L1H1<4");
}

TEST_F(EditedExplanation, PartsOfTheStreamSumToIt) {
  for (const Point& point : editable_points(transformer.specification())) {
    const RecordedPass pass = pass_with({{point, {}, ScaleBy{0.5F}}});
    for (const ResidualUnit unit : {ResidualUnit::component, ResidualUnit::head}) {
      const ResidualParts parts = decompose_residual(pass, unit, 8);
      std::vector<float> sum(parts.stream.size());
      for (std::size_t i = 0; i < parts.parts.size(); ++i) {
        for (std::size_t c = 0; c < sum.size(); ++c) {
          sum[c] += parts.vectors.view()(static_cast<std::int64_t>(i), c);
        }
      }
      EXPECT_LT(testing::relative_error(sum, parts.stream), 1e-6) << point_name(point);
    }
  }
}

// Backward implements the derivative of additions only.
TEST_F(EditedExplanation, GradientsGoBackThroughWhatIsAddedAlone) {
  const Point before{PointKind::residual_pre, 1}, at{PointKind::mixed_values, 1},
      after{PointKind::residual_mid, 1};
  const auto ask = [&](const Point& point, Change change) {
    Interventions editor(transformer.specification(), {{at, {}, std::move(change)}});
    differentiate_logit(transformer, tokens, {question}, {point}, &editor);
    trace_prompt(transformer, tokens, {.points = {point_name(point) + "_grad"}}, {}, &editor);
  };
  const AddVector vector{std::vector<float>(8, 0.5F)};
  EXPECT_NO_THROW(ask(before, vector));
  EXPECT_NO_THROW(ask(at, SetZero{}));
  EXPECT_NO_THROW(ask(after, SetZero{}));
  try {
    ask(before, SetZero{});
    FAIL() << "went back through a change";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("blocks.1.attn.hook_z"));
  }
}

// Backward goes on head by head, through the norm of what each has read.
TEST_F(EditedExplanation, GradientsGoBackThroughWhatIsAddedToInputsOfHeads) {
  const Point at{PointKind::key_input, 1}, before{PointKind::residual_pre, 1};
  const auto ask = [&](const Point& point, Change change) {
    Interventions editor(transformer.specification(), {{at, {.heads = {2}}, std::move(change)}});
    differentiate_logit(transformer, tokens, {question}, {point}, &editor);
  };
  const AddVector vector{std::vector<float>(32, 0.5F)};
  EXPECT_NO_THROW(ask(at, vector));
  EXPECT_NO_THROW(ask(before, vector));
  EXPECT_NO_THROW(ask(at, SetZero{}));
  EXPECT_THROW(ask(before, SetZero{}), Error);
}

// An edited result of a head is a part of its own, and what the head itself wrote stays.
TEST_F(EditedExplanation, AnEditedResultIsAPartOfItsOwn) {
  const RecordedPass pass = pass_with({{{PointKind::head_results, 1}, {.heads = {2}}, SetZero{}}});
  const Attribution found = attribute_logit(pass, question, AttributionUnit::head);
  EXPECT_NEAR(value_of(found, "1_result_edit"), -value_of(found, "L1H2"), 1e-5);
}

// Without anything to change, a pass that was kept is explained as any other.
TEST_F(EditedExplanation, NothingChangedNothingAdded) {
  const RecordedPass pass = pass_with({});
  for (const AttributionUnit unit : units) {
    const Attribution kept = attribute_logit(pass, question, unit);
    const Attribution read = attribute_logit(transformer, tokens, question, unit);
    ASSERT_EQ(kept.terms.size(), read.terms.size());
    for (std::size_t i = 0; i < kept.terms.size(); ++i) {
      EXPECT_EQ(kept.terms[i].name(), read.terms[i].name());
      EXPECT_NEAR(kept.terms[i].value, read.terms[i].value, 1e-6);
    }
  }
}

}  // namespace
}  // namespace heed
