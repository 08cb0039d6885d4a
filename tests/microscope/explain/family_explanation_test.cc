// Explanations of toy models of every family, against plain computations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "microscope/explain/attribution.h"
#include "microscope/explain/head_circuits.h"
#include "microscope/explain/logit_direction.h"
#include "microscope/explain/logit_gradients.h"
#include "microscope/explain/logit_lens.h"
#include "microscope/explain/loss_flow.h"
#include "microscope/explain/neurons.h"
#include "microscope/explain/nudge.h"
#include "microscope/explain/residual_parts.h"
#include "microscope/explain/weight_processing.h"
#include "microscope/families.h"
#include "microscope/intervene/answer_probability.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/capture.h"

namespace heed {
namespace {

class FamilyExplanation : public ::testing::TestWithParam<testing::ToyFamily> {
 protected:
  const StackSpecification& stack() const { return transformer.specification(); }

  // (T, V), normalised over the vocabulary
  static Tensor<double> log_probabilities(const Tensor<float>& logits) {
    Tensor<double> rows(logits.shape());
    for (std::int64_t t = 0; t < rows.shape()[0]; ++t) {
      const std::span<const float> row = logits.view()[t].span();
      const double largest = *std::ranges::max_element(row);
      double sum = 0;
      for (const float logit : row) sum += std::exp(logit - largest);
      for (std::int64_t v = 0; v < rows.shape()[1]; ++v) {
        rows.view()(t, v) = row[static_cast<std::size_t>(v)] - largest - std::log(sum);
      }
    }
    return rows;
  }

  Transformer transformer = testing::toy_transformer(GetParam().stack);
  std::vector<std::int32_t> tokens =
      testing::random_tokens(17, GetParam().stack.vocabulary_size, 3);
  Tensor<float> logits = testing::full_logits(transformer, tokens);
};

INSTANTIATE_TEST_SUITE_P(Families, FamilyExplanation,
                         ::testing::ValuesIn(testing::toy_families(32)),
                         [](const auto& tested) { return tested.param.name; });

// Terms are exact products of float activations, each of which has an error of about 2^-24 of the
// stream's length: 1e-5 of logits of a few units leaves a factor of a hundred.
TEST_P(FamilyExplanation, AttributionsSumToTheLogit) {
  const RecordedPass pass(transformer, {.source = {}, .target = tokens});
  for (const AttributionUnit unit : {AttributionUnit::component, AttributionUnit::head,
                                     AttributionUnit::neuron, AttributionUnit::source}) {
    for (const std::int64_t position : {0, 8, 16}) {
      const double expected = double{logits.view()(position, 7)} - logits.view()(position, 23);
      for (const Attribution& found :
           {attribute_logit(transformer, tokens, {7, 23}, unit, position),
            attribute_logit(pass, {7, 23}, unit, position)}) {
        EXPECT_NEAR(found.sum(), expected, 1e-5 * std::max(1.0, std::abs(expected)));
        EXPECT_NEAR(found.logit, expected, 1e-5 * std::max(1.0, std::abs(expected)));
      }
    }
  }
}

// A head is the sum of what it takes from each position, in the shares of its pattern.
TEST_P(FamilyExplanation, SourcesAreTheSharesOfThePattern) {
  constexpr std::int64_t position = 16;
  const auto heads =
      attribute_logit(transformer, tokens, {7, 23}, AttributionUnit::head, position).terms;
  const auto sources =
      attribute_logit(transformer, tokens, {7, 23}, AttributionUnit::source, position).terms;
  std::int64_t count = 0;
  for (const AttributionTerm& head : heads) {
    if (head.part != AttributionTerm::Part::head) continue;
    ++count;
    double sum = 0;
    for (const AttributionTerm& source : sources) {
      if (source.part != head.part || source.layer != head.layer || source.index != head.index) {
        continue;
      }
      sum += source.value;
      const std::int64_t own = stack().block.attention.window(head.layer);
      if (own > 0 && source.source <= position - own) {
        EXPECT_EQ(source.value, 0);
      }
    }
    EXPECT_NEAR(sum, head.value, 1e-5 * std::max(1.0, std::abs(head.value))) << head.name();
  }
  EXPECT_EQ(count, stack().layers * stack().heads());
}

TEST_P(FamilyExplanation, PartsOfTheStreamSumToIt) {
  for (const ResidualUnit unit : {ResidualUnit::component, ResidualUnit::head}) {
    const ResidualParts parts = decompose_residual(transformer, tokens, unit, 8);
    std::vector<float> sum(parts.stream.size());
    for (std::int64_t i = 0; i < std::ssize(parts.parts); ++i) {
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += parts.vectors.view()(i, c);
    }
    EXPECT_LT(testing::relative_error(sum, parts.stream), 1e-6);
    EXPECT_EQ(parts.parts[1].name == "pos_embed", stack().has_position_table());
  }
}

TEST_P(FamilyExplanation, TheLastRowOfTheLensIsTheModel) {
  const LogitLens lens = look_through_layers(transformer, tokens, {.top = 1, .followed = {9}});
  const Tensor<double> expected = log_probabilities(logits);
  const std::int64_t last = stack().layers;
  for (std::int64_t t = 0; t < lens.positions; ++t) {
    EXPECT_NEAR(lens.at(last, t).divergence, 0, 1e-6);
    EXPECT_NEAR(lens.at(last, t).logit, logits.view()(t, 9), 1e-5);
    EXPECT_NEAR(lens.at(last, t).probability, std::exp(expected.view()(t, 9)), 1e-5);
  }
}

// Sums of a few hundred f32 products in another order: 1e-5 of logits of a few units, ten times.
TEST_P(FamilyExplanation, ProcessedWeightsPredictTheSame) {
  const Tensor<double> expected = log_probabilities(logits);
  const auto largest_change = [&](const WeightProcessing& processing) {
    const Transformer processed = process_weights(transformer, processing);
    const Tensor<double> found = log_probabilities(testing::full_logits(processed, tokens));
    double worst = 0;
    for (std::int64_t i = 0; i < found.size(); ++i) {
      worst = std::max(worst, std::abs(found[i] - expected[i]));
    }
    return worst;
  };
  EXPECT_LT(largest_change({}), 1e-4);
  EXPECT_LT(largest_change({true, false, false, false}), 1e-4);
  EXPECT_LT(largest_change({false, true, false, false}), 1e-4);
  EXPECT_LT(largest_change({false, false, true, false}), 1e-4);
  EXPECT_LT(largest_change({false, false, false, true}), 1e-4);
}

// Also where norms have biases that the projections behind them lack.
TEST(WeightProcessing, GivesBiasesAPlace) {
  for (StackSpecification stack : {testing::toy_neox(32), testing::toy_stack(32)}) {
    stack.block.attention.query_bias = stack.block.feed_forward.bias = false;
    stack.block.attention.output_bias = false;
    const Transformer transformer = testing::toy_transformer(stack);
    const auto tokens = testing::random_tokens(17, stack.vocabulary_size, 3);
    const Transformer processed = process_weights(transformer);
    EXPECT_TRUE(processed.specification().block.attention.query_bias);
    EXPECT_TRUE(processed.specification().block.attention.output_bias);
    // Logits differ by a constant of each position.
    const Tensor<float> before = testing::full_logits(transformer, tokens);
    const Tensor<float> after = testing::full_logits(processed, tokens);
    for (std::int64_t t = 0; t < 17; ++t) {
      const double shift = double{after.view()(t, 0)} - before.view()(t, 0);
      for (std::int64_t v = 0; v < stack.vocabulary_size; ++v) {
        EXPECT_NEAR(after.view()(t, v) - before.view()(t, v), shift, 1e-4);
      }
    }
    for (const auto& [id, shape] : processed.parameters().list()) {
      if (!is_norm(id.role)) continue;
      const float expected = id.part == Part::weight ? 1.0F : 0.0F;
      for (const float value : processed.parameters().tensor(id).span()) EXPECT_EQ(value, expected);
    }
  }
}

// ‖leftᵀ·right·…‖ by whole (C, C) matrices, in double.
using Square = std::vector<double>;  // (C, C)
Square square_of(View<const float> left, View<const float> right) {
  const std::int64_t c = left.extent(1);
  Square result(static_cast<std::size_t>(c * c));
  for (std::int64_t d = 0; d < left.extent(0); ++d) {
    for (std::int64_t i = 0; i < c * c; ++i) {
      result[i] += double{left(d, i / c)} * right(d, i % c);
    }
  }
  return result;
}
double length_of(const Square& matrix) {
  return std::sqrt(std::inner_product(matrix.begin(), matrix.end(), matrix.begin(), 0.0));
}

TEST_P(FamilyExplanation, CompositionIsWhatTheDefinitionSays) {
  const std::int64_t c = stack().channels, heads = stack().heads();
  const LayerHeads writer(transformer, 0), reader(transformer, 1);
  for (const CompositionKind kind :
       {CompositionKind::query, CompositionKind::key, CompositionKind::value}) {
    const Tensor<float> scores = composition_scores(transformer, kind);
    for (std::int64_t from = 0; from < heads; ++from) {
      const Square written = square_of(writer.value(from), writer.output(from));
      for (std::int64_t to = 0; to < heads; ++to) {
        const Square read =
            kind == CompositionKind::query ? square_of(reader.query(to), reader.key(to))
            : kind == CompositionKind::key ? square_of(reader.key(to), reader.query(to))
                                           : square_of(reader.value(to), reader.output(to));
        Square both(read.size());
        for (std::int64_t i = 0; i < c; ++i) {
          for (std::int64_t k = 0; k < c; ++k) {
            for (std::int64_t j = 0; j < c; ++j) {
              both[i * c + j] += written[i * c + k] * read[k * c + j];
            }
          }
        }
        const double expected = length_of(both) / (length_of(written) * length_of(read));
        EXPECT_NEAR(scores.view()(0, from, 1, to), expected, 1e-5);
      }
    }
  }
}

// The score of a position and itself, up to a positive factor where queries and keys are
// normalised, is a bilinear form of the stream that the singular vectors of W_QK give.
TEST_P(FamilyExplanation, SingularVectorsGiveTheScoresOfEqualPositions) {
  const std::int64_t layer = 1, head = 3, t = 11;
  const std::vector<Point> points{{PointKind::norm_1_normalized, layer},
                                  {PointKind::query, layer},
                                  {PointKind::key, layer},
                                  {PointKind::scores, layer}};
  Transformer plain =
      process_weights(transformer, {true, false, false, false});  // norms without gain and bias
  for (const auto& [id, shape] : plain.parameters().list()) {
    if (id.role != Role::query_key_value || id.part != Part::bias) continue;
    std::ranges::fill(plain.parameters().tensor(id).span(), 0.0F);
  }
  const Capture capture = trace(plain, tokens, points);
  const auto x = capture.at({PointKind::norm_1_normalized, layer}).view()[0][t].span();
  const SingularVectors vectors = singular_vectors(plain, HeadCircuit::query_key, layer, head);
  double form = 0;
  for (std::size_t i = 0; i < vectors.values.size(); ++i) {
    const auto along = [&](const Tensor<float>& rows) {
      const auto row = rows.view()[static_cast<std::int64_t>(i)].span();
      return std::inner_product(row.begin(), row.end(), x.begin(), 0.0);
    };
    form += vectors.values[i] * along(vectors.left) * along(vectors.right);
  }
  const AttentionSpecification& attention = stack().block.attention;
  if (attention.query_key_norm) {  // each is divided by its root mean square
    for (const auto& [kind, index] : {std::pair{PointKind::query, head},
                                      std::pair{PointKind::key, head / attention.group_size()}}) {
      const auto rows = capture.at({kind, layer}).view()[0][t];
      const auto row =
          attention.head_norms == HeadNormExtent::all_heads ? rows.span() : rows[index].span();
      const double square = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
      form /= std::sqrt(square / static_cast<double>(row.size()) + stack().block.norm.epsilon);
    }
  }
  double score = form * attention.score_scale();
  if (attention.soft_cap > 0) score = attention.soft_cap * std::tanh(score / attention.soft_cap);
  EXPECT_NEAR(capture.at({PointKind::scores, layer}).view()(0, head, t, t), score,
              1e-5 * std::max(1.0, std::abs(score)));
}

// Central differences of a float pass: a step of 2e-3 loses about 1e-6 / 4e-3 to rounding, and
// somewhat more to curvature.
TEST_P(FamilyExplanation, GradientsAgreeWithFiniteDifferences) {
  const LogitMetric metric{{7, 23}, -1};
  std::vector<Point> points{{PointKind::embedding},
                            {PointKind::residual_pre, 1},
                            {PointKind::query, 1},
                            {PointKind::query_input, 1},
                            {PointKind::mixed_values, 0},
                            {PointKind::neurons_pre, 0},
                            {PointKind::neurons_post, 1},
                            {PointKind::attention_out, 1},
                            {PointKind::feed_forward_out, 0},
                            {PointKind::norm_1_normalized, 1}};
  for (const PointKind kind :
       {PointKind::feed_forward_in, PointKind::rotated_query, PointKind::neurons_linear}) {
    if (has_point(stack(), kind)) points.push_back({kind, 1});
  }
  const LogitGradients found = differentiate_logit(transformer, tokens, metric, points);
  constexpr float step = 2e-3F;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const View<const float> row = found.gradients[i].view()[0][16];
    const auto metric_at = [&](float by) {
      testing::Nudge nudge(points[i], 16, 5, by);
      return differentiate_logit(transformer, tokens, metric, {}, &nudge).metric;
    };
    const double difference = (metric_at(step) - metric_at(-step)) / (2 * step);
    EXPECT_NEAR((row.rank() == 2 ? row[2] : row)(5), difference,
                1e-2 * std::max(1.0, std::abs(difference)))
        << point_name(points[i]);
  }
}

TEST_P(FamilyExplanation, TheLossFlowsBackToTheStream) {
  const RecordedPass pass(transformer, {.source = {}, .target = tokens});
  const LossFlow flow = loss_flow(pass, 7, 16);
  EXPECT_NEAR(flow.loss, -log_probabilities(logits).view()(16, 7), 1e-5);
  constexpr float step = 2e-3F;
  double sum = 0;
  for (std::int64_t channel = 0; channel < stack().channels; ++channel) {
    const auto loss_at = [&](float by) {
      testing::Nudge nudge({PointKind::residual_pre, 1}, 16, channel, by);
      return -std::log(next_token_probabilities(transformer, tokens, &nudge)[7]);
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    sum += slope * slope;
  }
  const double norm = flow.stacks.at(0).norms.view()(1, 16);
  EXPECT_NEAR(norm, std::sqrt(sum), 0.01 * norm + 1e-3);
}

// A direction promotes a token by what writing it to the stream adds to the token's logit.
TEST_P(FamilyExplanation, DirectionsPromoteWhatTheyAddToLogits) {
  const auto contexts = find_neuron_contexts(transformer, tokens, std::vector<NeuronId>{{1, 5}},
                                             {.top = stack().vocabulary_size, .window = 17});
  const NeuronMemory& neuron = contexts.front();
  const Capture capture = trace(transformer, tokens, {{PointKind::neurons_post, 1}});
  const View<const float> post = capture.at({PointKind::neurons_post, 1}).view()[0];
  float largest = post(0, 5);
  for (std::int64_t t = 0; t < 17; ++t) largest = std::max(largest, post(t, 5));
  EXPECT_EQ(neuron.largest, largest);
  const View<const float> down = transformer.parameters().block(1).down.weight;
  std::vector<float> column;
  for (std::int64_t c = 0; c < stack().channels; ++c) column.push_back(down(c, 5));
  for (const ProjectedToken& token : neuron.says.most) {
    const double expected = logit_direction(transformer, {token.token, {}}).project(column);
    EXPECT_NEAR(token.score, expected, 1e-4 * std::max(1.0, std::abs(expected)));
  }
}

}  // namespace
}  // namespace heed
