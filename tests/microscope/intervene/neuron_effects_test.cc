// What single neurons do to the next token.
#include "microscope/intervene/neuron_effects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <span>

#include "base/expect_error.h"
#include "microscope/explain/attribution.h"
#include "microscope/families.h"
#include "microscope/intervene/answer_probability.h"

namespace heed {
namespace {

using testing::ToyFamily;

class NeuronEffectsOf : public ::testing::TestWithParam<ToyFamily> {};

// Against the attribution of every difference of logits, weighted by the other's probability.
TEST_P(NeuronEffectsOf, DirectEffectsAreThoseOnTheLogProbability) {
  const Transformer transformer = testing::toy_transformer(GetParam().stack);
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 5);
  const std::vector<double> probabilities = next_token_probabilities(transformer, tokens);
  const auto likeliest =
      static_cast<std::int32_t>(std::ranges::max_element(probabilities) - probabilities.begin());
  std::vector<double> expected;  // of the neurons of all layers
  for (std::int32_t other = 0; other < 61; ++other) {
    std::size_t n = 0;
    for (const AttributionTerm& term :
         attribute_logit(transformer, tokens, {likeliest, other}, AttributionUnit::neuron).terms) {
      if (term.part != AttributionTerm::Part::neuron) continue;
      if (n == expected.size()) expected.push_back(0);
      expected[n++] += probabilities[static_cast<std::size_t>(other)] * term.value;
    }
  }
  const std::int64_t width = transformer.specification().feed_forward();
  ASSERT_EQ(std::ssize(expected), 2 * width);
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    const NeuronEffects found =
        neuron_effects(transformer, tokens,
                       {.layer = layer, .most = static_cast<std::size_t>(width), .controls = 0});
    EXPECT_EQ(found.token, likeliest);
    EXPECT_NEAR(found.probability, probabilities[static_cast<std::size_t>(likeliest)], 1e-12);
    ASSERT_EQ(std::ssize(found.neurons), width);
    double before = INFINITY;
    for (const NeuronEffect& effect : found.neurons) {
      EXPECT_EQ(effect.id.layer, layer);
      EXPECT_LE(effect.direct, before);
      before = effect.direct;
      const double direct = expected[static_cast<std::size_t>(layer * width + effect.id.neuron)];
      // Sums of 61 · 32 products in double of numbers in f32, of some tens.
      EXPECT_NEAR(effect.direct, direct, 1e-5 * std::max(1.0, std::abs(direct)));
    }
    EXPECT_NEAR(found.largest.direct, *std::ranges::max_element(expected),
                1e-5 * std::max(1.0, found.largest.direct));
  }
}

// A neuron of the last block that is off writes nothing: its column of W_out is zero.
TEST_P(NeuronEffectsOf, SwitchingOffIsMeasured) {
  const Transformer transformer = testing::toy_transformer(GetParam().stack);
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 6);
  const NeuronEffects found =
      neuron_effects(transformer, tokens, {.layer = 1, .most = 3, .controls = 3});
  ASSERT_EQ(found.neurons.size(), 3U);
  double moved = 0;
  for (const NeuronEffect& effect : found.neurons) {
    Transformer without = testing::toy_transformer(GetParam().stack);
    const View<float> down = without.parameters().tensor({.role = Role::down, .layer = 1});
    for (std::int64_t c = 0; c < down.extent(0); ++c) down(c, effect.id.neuron) = 0;
    EXPECT_NEAR(effect.without, answer_probability(without, tokens, found.token), 1e-5);
    moved = std::max(moved, std::abs(effect.without - found.probability));
  }
  EXPECT_GT(moved, 1e-4);  // ten times what two ways of computing it may differ by
  // The control takes as much of another neuron's vector away.
  ASSERT_EQ(found.controls.size(), 3U);
  for (const NeuronControl& control : found.controls) {
    EXPECT_NE(control.id.neuron, found.neurons.front().id.neuron);
    EXPECT_EQ(control.id.layer, 1);
  }
}

// More edits than one pass takes, of heads and of neurons; in f32 and in quantised weights.
TEST_P(NeuronEffectsOf, EditsThatShareAPassGiveTheProbabilitiesOfTheirOwn) {
  for (const auto format : {kernels::WeightFormat::f32, kernels::WeightFormat::int8}) {
    Transformer transformer = testing::toy_transformer(GetParam().stack);
    transformer.parameters().prepare(format);
    const StackSpecification& stack = transformer.specification();
    for (const std::int64_t length : {1, 7, 24}) {
      const std::vector<std::int32_t> tokens = testing::random_tokens(length, 61, 6);
      std::vector<Interventions> edits;
      for (const HeadName& head : all_heads(stack)) {
        edits.push_back(switching_off(stack, std::span(&head, 1)));
      }
      for (std::int64_t neuron = 0; neuron < 40; ++neuron) {
        edits.push_back({stack,
                         {{.point = {PointKind::neurons_post, neuron % stack.layers},
                           .where = {.neurons = {neuron}, .first_position = length / 2},
                           .change = ScaleBy{-2}}}});
      }
      const std::vector<double> together = answer_probabilities(transformer, tokens, 5, edits);
      ASSERT_EQ(together.size(), edits.size());
      std::set<double> different;
      for (std::size_t i = 0; i < edits.size(); ++i) {
        EXPECT_EQ(together[i], answer_probability(transformer, tokens, 5, &edits[i])) << i;
        different.insert(together[i]);
      }
      EXPECT_GT(different.size(), edits.size() / 4) << "each edit is one of its own";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, NeuronEffectsOf, ::testing::ValuesIn(testing::toy_families(24)),
                         [](const auto& one) { return one.param.name; });

// A model whose last block has one neuron that writes the token's own direction, and others that
// write next to nothing.
TEST(NeuronEffects, OneThatMattersIsFirstAndBeyondItsControl) {
  Transformer transformer = testing::toy_transformer(testing::toy_stack(24));
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 6);
  const View<float> down = transformer.parameters().tensor({.role = Role::down, .layer = 1});
  for (float& value : down.span()) value *= 1e-3F;
  EXPECT_FALSE(neuron_effects(transformer, tokens, {.layer = 1}).first_matters());

  const NeuronEffects before = neuron_effects(transformer, tokens, {.layer = 1, .most = 64});
  const auto active = *std::ranges::max_element(
      before.neurons, {}, [](const NeuronEffect& effect) { return effect.activation; });
  const LogitDirection direction = log_probability_direction(
      transformer, before.token, next_token_probabilities(transformer, tokens));
  for (std::int64_t c = 0; c < down.extent(0); ++c) {
    down(c, active.id.neuron) = static_cast<float>(
        4 * direction.direction[static_cast<std::size_t>(c)] / active.activation);
  }
  const NeuronEffects found = neuron_effects(transformer, tokens, {.layer = 1});
  ASSERT_EQ(found.token, before.token);
  EXPECT_EQ(found.neurons.front().id.neuron, active.id.neuron);
  EXPECT_EQ(found.largest.id.layer, found.largest.direct > found.neurons.front().direct ? 0 : 1);
  EXPECT_TRUE(found.first_matters());
  EXPECT_GT(found.probability - found.neurons.front().without, 0.05);
  for (const NeuronControl& control : found.controls) {
    EXPECT_NEAR(control.without, found.probability, 0.02);
  }
  // Another one can be chosen; then it is the one that is judged.
  const std::int64_t other = active.id.neuron == 5 ? 6 : 5;
  const NeuronEffects chosen = neuron_effects(transformer, tokens, {.layer = 1, .chosen = other});
  EXPECT_EQ(chosen.neurons.front().id.neuron, other);
  EXPECT_EQ(chosen.neurons[1].id.neuron, active.id.neuron);
  EXPECT_FALSE(chosen.first_matters());
}

TEST(NeuronEffects, RefuseWhatIsNotThere) {
  const Transformer transformer = testing::toy_transformer(testing::toy_stack(24));
  const std::vector<std::int32_t> tokens = {1, 2, 3};
  EXPECT_THROW(neuron_effects(transformer, tokens, {.layer = 2}), Error);
  EXPECT_THROW(neuron_effects(transformer, tokens, {.chosen = 64}), Error);
  EXPECT_THROW(neuron_effects(transformer, {}, {}), Error);
  const std::atomic<bool> stop{true};
  EXPECT_THROW(neuron_effects(transformer, tokens, {.stop = &stop}), Error);
  StackSpecification after = testing::toy_stack(24);
  after.block.norm.placement = NormPlacement::post;
  const Transformer post = testing::toy_transformer(after);
  testing::expect_error(ErrorCode::unsupported, [&] { neuron_effects(post, tokens, {}); });
}

}  // namespace
}  // namespace heed
