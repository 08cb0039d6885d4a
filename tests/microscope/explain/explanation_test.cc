// Explanations of passes against plain computations.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "generate/random_transformer.h"
#include "microscope/explain/attribution.h"
#include "microscope/explain/logit_lens.h"
#include "microscope/explain/residual_parts.h"
#include "microscope/explain/weight_processing.h"
#include "microscope/traces/capture.h"

namespace heed {
namespace {

using testing::full_logits;
using testing::random_tokens;
using testing::relative_error;

// Random gains and biases too: after initialize() the ones are one and the others zero.
Transformer unruly_transformer(StackSpecification config = testing::small_config()) {
  Transformer transformer = testing::random_transformer(config);
  RandomStream random(11, 0);
  for (const auto& [id, shape] : transformer.parameters().list()) {
    if (shape.rank() != 1) continue;
    for (float& value : transformer.parameters().tensor(id).span()) {
      value = static_cast<float>(id.part == Part::weight ? 1 + 0.3 * random.normal()
                                                         : 0.5 * random.normal());
    }
  }
  return transformer;
}

StackSpecification without_biases() {
  StackSpecification config = testing::small_config();
  set_biases(config, Biases::none);
  config.tied_unembedding = false;
  config.block.attention.head_size = 6;
  return config;
}

std::vector<double> softmax(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  std::vector<double> shares;
  for (const float logit : logits) shares.push_back(std::exp(logit - largest));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

class Explanation : public ::testing::TestWithParam<bool> {
 protected:
  Transformer transformer =
      unruly_transformer(GetParam() ? testing::small_config() : without_biases());
  std::vector<std::int32_t> tokens =
      random_tokens(17, transformer.specification().vocabulary_size, 3);
  Tensor<float> logits = full_logits(transformer, tokens);
};

INSTANTIATE_TEST_SUITE_P(WithAndWithoutBiases, Explanation, ::testing::Bool());

// Rounding: terms are exact products of what float activations hold, each of which has an error of
// about 2^-24 of the stream's length; 1e-5 of the largest term leaves a factor of a hundred.
TEST_P(Explanation, AttributionsSumToTheLogit) {
  double worst = 0;
  for (const AttributionUnit unit : {AttributionUnit::component, AttributionUnit::head,
                                     AttributionUnit::neuron, AttributionUnit::source}) {
    for (const std::int64_t position : {0, 8, -1}) {
      for (const LogitQuestion& question : {LogitQuestion{7, {}}, LogitQuestion{7, 23}}) {
        const Attribution attribution =
            attribute_logit(transformer, tokens, question, unit, position);
        const std::int64_t row = attribution.position;
        const double expected =
            double{logits.view()(row, 7)} - (question.against ? logits.view()(row, 23) : 0.0F);
        EXPECT_NEAR(attribution.logit, expected, 1e-5 * std::max(1.0, std::abs(expected)));
        EXPECT_NEAR(attribution.sum(), expected, 1e-5 * std::max(1.0, std::abs(expected)))
            << static_cast<int>(unit) << " " << position;
        worst = std::max(worst, std::abs(attribution.sum() - expected));
      }
    }
  }
  RecordProperty("worst", fmt::format("{:.1e}", worst));
}

// Finer units sum to coarser ones.
TEST_P(Explanation, UnitsAgree) {
  const LogitQuestion question{5, 40};
  const auto terms = [&](AttributionUnit unit) {
    return attribute_logit(transformer, tokens, question, unit).terms;
  };
  const auto heads = terms(AttributionUnit::head);
  const auto sources = terms(AttributionUnit::source);
  for (const AttributionTerm& head : heads) {
    if (head.part != AttributionTerm::Part::head) continue;
    double sum = 0;
    std::int64_t count = 0;
    for (const AttributionTerm& source : sources) {
      if (source.part == head.part && source.layer == head.layer && source.index == head.index) {
        sum += source.value;
        ++count;
      }
    }
    EXPECT_EQ(count, 17);
    EXPECT_NEAR(sum, head.value, 1e-5) << head.name();
  }
  EXPECT_EQ(terms(AttributionUnit::component).size(), 2U + 2 * 3 + 1);
  EXPECT_EQ(heads.size(), 2U + 3 * (4 + 1) + 1);
  EXPECT_EQ(terms(AttributionUnit::neuron).size(), 2U + 3 * (1 + 128) + 1);
  EXPECT_EQ(heads[2].name(), "L0H0");
  EXPECT_EQ(sources[4].name(), "L0H0<2");
  EXPECT_EQ(heads.back().name(), "bias");
}

TEST_P(Explanation, RefusesWhatIsNotThere) {
  const auto ask = [&](std::int32_t token, std::int64_t position) {
    attribute_logit(transformer, tokens, {token}, AttributionUnit::head, position);
  };
  EXPECT_THROW(ask(61, -1), Error);
  EXPECT_THROW(ask(-1, -1), Error);
  EXPECT_THROW(ask(3, 17), Error);
  EXPECT_THROW(look_through_layers(transformer, tokens, {.followed = {1, 2}}), Error);
  EXPECT_THROW(look_through_layers(transformer, tokens, {.followed = {61}}), Error);
}

TEST_P(Explanation, TheLastRowOfTheLensIsTheModel) {
  const LogitLens lens = look_through_layers(transformer, tokens, {.top = 61, .followed = {9}});
  ASSERT_EQ(lens.points.size(), 4U);
  EXPECT_EQ(point_name(lens.points.back()), "blocks.2.hook_resid_post");
  for (std::int64_t t = 0; t < lens.positions; ++t) {
    const LensCell& cell = lens.at(3, t);
    const std::vector<double> expected = softmax(logits.view()[t].span());
    EXPECT_NEAR(cell.divergence, 0, 1e-6);
    EXPECT_NEAR(cell.probability, expected[9], 1e-5);
    EXPECT_NEAR(cell.logit, logits.view()(t, 9), 1e-5);
    double sum = 0;
    for (const LensToken& token : cell.top) {
      EXPECT_NEAR(token.probability, expected[token.token], 1e-5);
      sum += token.probability;
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_EQ(cell.top[cell.rank].token, 9);
    EXPECT_GT(lens.at(0, t).divergence, 1e-3);
  }
}

// Against plain loops, for a middle layer and without the norm.
TEST_P(Explanation, TheLensReadsTheStream) {
  const LogitLens lens =
      look_through_layers(transformer, tokens, {.top = 1, .norm = LensNorm::none});
  const Capture capture = trace(transformer, tokens, {{PointKind::residual_pre, 1}});
  const View<const float> stream = capture.at({PointKind::residual_pre, 1}).view()[0];
  Tensor<float> expected(Shape{17, 61});
  transformer.project(stream, expected);
  for (std::int64_t t = 0; t < 17; ++t) {
    const std::vector<double> shares = softmax(expected.view()[t].span());
    const auto best = std::ranges::max_element(shares);
    EXPECT_EQ(lens.at(1, t).top.front().token, best - shares.begin());
    EXPECT_NEAR(lens.at(1, t).top.front().probability, *best, 1e-5);
  }
}

TEST_P(Explanation, PartsOfTheStreamSumToIt) {
  for (const ResidualUnit unit : {ResidualUnit::component, ResidualUnit::head}) {
    const ResidualParts parts = decompose_residual(transformer, tokens, unit, 8);
    std::vector<float> sum(parts.stream.size());
    double share = 0;
    for (std::size_t i = 0; i < parts.parts.size(); ++i) {
      share += parts.parts[i].share;
      EXPECT_LE(std::abs(parts.parts[i].cosine), 1 + 1e-9);
      for (std::size_t c = 0; c < sum.size(); ++c) {
        sum[c] += parts.vectors.view()(static_cast<std::int64_t>(i), c);
      }
    }
    EXPECT_LT(relative_error(sum, parts.stream), 1e-6);
    EXPECT_NEAR(share, 1, 1e-6);
  }
}

// Softmax in double of float logits whose rounding is about 1e-7 of their size of a few units.
TEST_P(Explanation, ProcessedWeightsPredictTheSame) {
  const Transformer processed = process_weights(transformer);
  const Tensor<float> after = full_logits(processed, tokens);
  double worst = 0;
  double shift = 0;
  for (std::int64_t t = 0; t < 17; ++t) {
    const std::vector<double> expected = softmax(logits.view()[t].span());
    const std::vector<double> actual = softmax(after.view()[t].span());
    for (std::size_t v = 0; v < expected.size(); ++v) {
      worst = std::max(worst, std::abs(expected[v] - actual[v]));
    }
    shift = std::max(shift, std::abs(double{after.view()(t, 0)} - logits.view()(t, 0)));
  }
  EXPECT_LT(worst, 1e-5);
  EXPECT_GT(shift, 1e-3);  // it was not the same model
  RecordProperty("worst", fmt::format("{:.1e}", worst));
}

TEST_P(Explanation, ProcessingLeavesWhatItSays) {
  const Transformer processed = process_weights(transformer);
  const Parameters& parameters = processed.parameters();
  EXPECT_FALSE(processed.specification().tied_unembedding);
  for (const auto& [id, shape] : parameters.list()) {
    const View<const float> tensor = parameters.tensor(id);
    const std::string name = parameter_name(id);
    if (is_norm(id.role)) {
      const float expected = id.part == Part::weight ? 1.0F : 0.0F;
      for (const float value : tensor.span()) EXPECT_EQ(value, expected) << name;
    }
    const bool reads_norm =
        id.role == Role::query_key_value || id.role == Role::up || id.role == Role::token_embedding;
    if (!reads_norm || id.part == Part::bias) continue;
    for (std::int64_t row = 0; row < tensor.extent(0); ++row) {
      const auto values = tensor[row].span();
      EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0), 0, 1e-5) << name;
    }
  }
  // The stream of a processed model has no mean, and no head adds a value's bias.
  const Capture capture = trace(processed, tokens, {{PointKind::residual_post, 2}});
  const auto stream = capture.at({PointKind::residual_post, 2}).view()[0][5].span();
  EXPECT_NEAR(std::accumulate(stream.begin(), stream.end(), 0.0), 0, 1e-3);
  const View<const float> head = parameters.unembedding().weight;
  for (std::int64_t c = 0; c < head.extent(1); ++c) {
    double sum = 0;
    for (std::int64_t v = 0; v < head.extent(0); ++v) sum += head(v, c);
    EXPECT_NEAR(sum, 0, 1e-4);
  }
}

TEST_P(Explanation, NothingAskedNothingDone) {
  const Transformer same = process_weights(transformer, {false, false, false, false});
  const Tensor<float> after = full_logits(same, tokens);
  EXPECT_EQ(relative_error(after.span(), logits.span()), 0);
}

}  // namespace
}  // namespace heed
