// Editors in training: backward goes on from what they leave, values and gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/expect_error.h"
#include "generate/random_transformer.h"
#include "microscope/toy_pairs.h"
#include "model/transformer.h"

namespace heed {
namespace {

constexpr float edit_factor = 0.6F;

void scale(View<float> values) {
  if (values.rank() == 0) {
    *values.data() *= edit_factor;
    return;
  }
  for (std::int64_t i = 0; i < values.extent(0); ++i) scale(values[i]);
}

// Multiplies a point's values by a factor and, as the chain rule says, its gradient.
class Scaling final : public Editor {
 public:
  explicit Scaling(const Point& point) : point_(point) {}

  bool edits(const Point& point) const override { return point == point_; }
  void edit(const EditedPoint&, View<float> values) override {
    ++edits_;
    scale(values);
  }
  bool edits_gradient(const Point& point) const override { return point == point_; }
  void edit_gradient(const Point&, View<float> gradient) override {
    ++gradient_edits_;
    scale(gradient);
  }

  int edits_ = 0;
  int gradient_edits_ = 0;

 private:
  Point point_;
};

using Direction = std::vector<double>;  // of length one

double along(const Direction& direction, std::span<const float> gradient) {
  return std::inner_product(direction.begin(), direction.end(), gradient.begin(), 0.0);
}

Direction direction_of(std::span<const float> gradient) {
  Direction direction(gradient.begin(), gradient.end());
  const double norm = std::sqrt(along(direction, gradient));
  for (double& d : direction) d /= norm;
  return direction;
}

// The slope of a loss is the gradient's share of the direction: of its own, and of `other`, in
// which the parts have slopes that it would lack if it were wrongly zero there.
void expect_gradient(Parameters& parameters, Gradients& gradients, const Direction& other,
                     const std::function<double()>& compute, const std::string& what) {
  std::ranges::fill(gradients.all(), 0.0F);
  compute();
  const std::vector<float> gradient(gradients.all().begin(), gradients.all().end());
  const std::vector<float> before(parameters.all().begin(), parameters.all().end());
  const Direction own = direction_of(gradient);
  const double norm = along(own, gradient);
  ASSERT_GT(norm, 1e-2) << what;
  for (const Direction* const direction : {&own, &other}) {
    const auto loss_at = [&](double distance) {
      for (std::size_t i = 0; i < before.size(); ++i) {
        parameters.all()[i] = static_cast<float>(before[i] + distance * (*direction)[i]);
      }
      return compute();
    };
    const double step = 4e-3;
    const double near = loss_at(step) - loss_at(-step);
    const double far = loss_at(2 * step) - loss_at(-2 * step);
    std::ranges::copy(before, parameters.all().begin());
    EXPECT_NEAR((8 * near - far) / (12 * step) / norm, along(*direction, gradient) / norm, 5e-3)
        << what << " norm " << norm;
  }
}

// What a pass edits once for each reader, and again in backward.
bool is_read_apart(PointKind kind) {
  switch (kind) {
    case PointKind::attention_in:
    case PointKind::query_input:
    case PointKind::key_input:
    case PointKind::value_input:
    case PointKind::feed_forward_in: return true;
    default: return false;
  }
}

void expect_as_many_edits(const Scaling& editor, const Point& point) {
  EXPECT_GT(editor.gradient_edits_, 0) << point_name(point);
  if (is_read_apart(point.kind)) {
    EXPECT_GE(editor.edits_, editor.gradient_edits_) << point_name(point);
  } else {
    EXPECT_EQ(editor.edits_, editor.gradient_edits_) << point_name(point);
  }
}

// Of the layer at index 1, which has others before and behind it.
std::vector<Point> editable_points(const Architecture& architecture) {
  std::vector<Point> points;
  for (const Point& point : all_points(architecture)) {
    if (point.layer == 0 || point.layer > 1) continue;
    const AttentionSpecification& attention = architecture.of(point.site).block.attention;
    const bool is_shared = attention.query_heads != attention.key_value_heads;
    if (point.kind == PointKind::attention_in && is_shared) continue;  // see require_editable()
    if (gradient_is_editable(point.kind)) points.push_back(point);
  }
  EXPECT_GE(points.size(), 15U);
  return points;
}

struct ToyTexts {
  std::vector<std::int32_t> tokens = testing::random_tokens(2 * 9, 61, 3);
  std::vector<std::int32_t> targets = testing::random_tokens(2 * 9, 61, 4);

  View<const std::int32_t> read() const { return {tokens.data(), {2, 9}}; }
  View<const std::int32_t> next() const { return {targets.data(), {2, 9}}; }
};

void expect_edits_in(StackSpecification config) {
  config.initial_deviation = 0.15F;  // gradients well above rounding
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(7);
  const ToyTexts texts;
  TrainingBuffers buffers(config, 2, 9);
  Gradients gradients(transformer.parameters().architecture());
  transformer.loss_and_gradients(texts.read(), texts.next(), {}, buffers, gradients);
  const Direction unedited = direction_of(gradients.all());
  for (const Point& point : editable_points(transformer.parameters().architecture())) {
    Scaling editor(point);
    const auto compute = [&] {
      return transformer
          .loss_and_gradients(texts.read(), texts.next(), {.editor = &editor}, buffers, gradients)
          .sum;
    };
    expect_gradient(transformer.parameters(), gradients, unedited, compute, point_name(point));
    expect_as_many_edits(editor, point);
  }
}

TEST(GradientEdits, OfEveryPointOfGpt2) { expect_edits_in(testing::small_config()); }

TEST(GradientEdits, OfRotatedQueriesAndGates) {
  StackSpecification config = testing::small_config();
  config.block.attention.positions = PositionKind::rotary;
  config.block.attention.key_value_heads = 2;
  config.block.attention.query_key_norm = true;
  config.block.feed_forward.gated = true;
  config.block.feed_forward.activation = Activation::silu;
  expect_edits_in(config);
}

TEST(GradientEdits, OfParallelBlocks) {
  StackSpecification config = testing::small_config();
  config.block.residual = ResidualKind::parallel;
  expect_edits_in(config);
}

TEST(GradientEdits, OfBranchesThatShareANorm) {
  StackSpecification config = testing::small_config();
  config.block.residual = ResidualKind::parallel_shared;
  expect_edits_in(config);
}

TEST(GradientEdits, OfRmsNormsOfInputsAndOutputs) {
  StackSpecification config = testing::small_config();
  config.block.norm.kind = NormKind::rms;
  config.block.norm.bias = false;
  config.block.norm.placement = NormPlacement::around;
  expect_edits_in(config);
}

TEST(GradientEdits, OfEveryPointOfPairs) {
  for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
    Transformer model(testing::toy_pair_architecture({placement, PositionKind::sinusoidal}));
    model.parameters().initialize(7);
    const std::vector<std::int32_t> source{3, 9, 27, 41, 5, 12, 12, 8, 30, 2};
    const std::vector<std::int32_t> target{1, 7, 19, 33, 1, 44, 6}, next{7, 19, 33, 2, 44, 6, 2};
    const std::vector<std::int64_t> source_starts{0, 4, 10}, target_starts{0, 4, 7};
    const PairBatch batch{
        .source = {source, source_starts}, .target = {target, target_starts}, .next = next};
    PairBuffers buffers(model.architecture(), Keep::every_block);
    Gradients gradients(model.architecture());
    model.loss_and_gradients(batch, {}, buffers, gradients);
    const Direction unedited = direction_of(gradients.all());
    for (const Point& point : editable_points(model.architecture())) {
      Scaling editor(point);
      const auto compute = [&] {
        return model.loss_and_gradients(batch, {.editor = &editor}, buffers, gradients).sum;
      };
      expect_gradient(model.parameters(), gradients, unedited, compute, point_name(point));
      expect_as_many_edits(editor, point);
    }
  }
}

TEST(GradientEdits, OfPatternsNeedAttentionWithoutDropout) {
  Transformer transformer = testing::random_transformer(testing::small_config());
  transformer.set_dropout(0, 0.5F, 0);
  const ToyTexts texts;
  TrainingBuffers buffers(transformer.specification(), 2, 9);
  Gradients gradients(transformer.parameters().architecture());
  Scaling editor({PointKind::pattern, 1});
  testing::expect_error(
      ErrorCode::unsupported,
      [&] {
        transformer.loss_and_gradients(texts.read(), texts.next(),
                                       {.dropout = {.active = true, .seed = 1}, .editor = &editor},
                                       buffers, gradients);
      },
      "dropout");
}

}  // namespace
}  // namespace heed
