#include "heed/activations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/expect_error.h"
#include "heed/detection.h"
#include "heed/generation.h"
#include "heed/microworld.h"
#include "heed/stacks.h"
#include "heed/tokenizer.h"
#include "heed/tokens.h"
#include "heed/weights.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Model& starter_model() {
  static const Model model = Model::load("starter");
  return model;
}

std::vector<std::int32_t> some_tokens() {
  return prompt_tokens(starter_model(), "A fluffy blue creature roamed the verdant forest.");
}

// The elements of a view, row by row.
std::vector<float> elements(const SharedView& view) {
  std::vector<float> all;
  std::vector<std::int64_t> index(view.shape.size(), 0);
  const auto count =
      std::accumulate(view.shape.begin(), view.shape.end(), std::int64_t{1}, std::multiplies{});
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, offset = 0;
    for (std::size_t d = view.shape.size(); d-- > 0; rest /= view.shape[d]) {
      offset += rest % view.shape[d] * view.strides[d];
    }
    all.push_back(view.data[offset]);
  }
  return all;
}

TEST(Activations, EqualATraceOfAllPoints) {
  const std::vector<std::int32_t> tokens = some_tokens();
  const Trace trace = starter_model().trace(tokens, {.points = {"*"}});
  const Activations found = record(starter_model(), {tokens});
  for (const TracedArray& array : trace.arrays) {
    ASSERT_TRUE(found.has(array.name)) << array.name;
    EXPECT_EQ(found.shape(array.name), array.shape) << array.name;
    EXPECT_EQ(elements(found.at(array.name)), array.values.vector()) << array.name;
  }
  EXPECT_EQ(found.logits().reshaped({std::ssize(tokens), found.logits().shape()[2]}),
            starter_model().all_logits(tokens));
  EXPECT_FALSE(found.has("blocks.6.hook_resid_pre"));
}

TEST(Activations, ShareTheMemoryOfThePass) {
  const std::vector<std::int32_t> tokens = some_tokens();
  SharedView kept;
  std::vector<float> values;
  {
    const Activations found = record(starter_model(), {tokens});
    EXPECT_EQ(found.at("blocks.0.hook_resid_post").data, found.at("blocks.1.hook_resid_pre").data);
    EXPECT_EQ(found.at("blocks.1.attn.hook_q").data, found.at("blocks.1.attn.hook_q").data);
    const SharedView post = found.at("blocks.1.mlp.hook_post");
    EXPECT_EQ(found.at("blocks.1.mlp.hook_post").data, post.data);
    kept = found.at("blocks.2.attn.hook_z");
    values = elements(kept);
  }
  EXPECT_EQ(elements(kept), values);
}

TEST(Activations, OfHeadsAndPositionsAreTiles) {
  const std::vector<std::int32_t> tokens = some_tokens();
  const Activations whole = record(starter_model(), {tokens});
  const Activations part = record(starter_model(), {tokens}, {.points = {"pattern1"}});
  ASSERT_TRUE(part.is_lazy_attention("blocks.1.attn.hook_pattern"));
  const AttentionTiles tiles{
      .heads = {3, 1}, .query_begin = 2, .query_end = 6, .key_begin = 1, .key_end = 4};
  const Array tile = whole.attention("blocks.1.attn.hook_pattern", tiles);
  EXPECT_THAT(tile.shape(), ElementsAre(1, 2, 4, 3));
  EXPECT_EQ(tile, part.attention("blocks.1.attn.hook_pattern", tiles));
  const std::vector<float> all = elements(whole.at("blocks.1.attn.hook_pattern"));
  const auto count = tokens.size();
  EXPECT_EQ(tile[3], all[(3 * count + 3) * count + 1]);  // of head 3: query 3, key 1
  EXPECT_THROW(part.at("blocks.1.attn.hook_z"), Error);
  EXPECT_THROW(whole.attention("blocks.1.attn.hook_z", tiles), Error);
}

TEST(Hooks, ThatChangeNothingChangeNoBit) {
  const std::vector<std::int32_t> tokens = some_tokens();
  const Array logits = run(starter_model(), {tokens});
  for (const std::string& name : point_names(starter_model())) {
    if (name == "unembed.hook_out") continue;
    int calls = 0;
    const Array hooked =
        run(starter_model(), {tokens}, {.hooks = {{name, [&](const HookedPoint& point, Array&) {
                                                     EXPECT_EQ(point.name, name);
                                                     ++calls;
                                                   }}}});
    EXPECT_EQ(calls, 1) << name;
    EXPECT_EQ(hooked, logits) << name;
  }
}

TEST(Hooks, MayAssignAnArrayOfTheShapeAlone) {
  const std::vector<std::int32_t> tokens = some_tokens();
  const auto with = [&](const std::function<void(const HookedPoint&, Array&)>& call) {
    return run(starter_model(), {tokens}, {.hooks = {{"mlp_out1", call}}});
  };
  const Array assigned = with([](const HookedPoint&, Array& values) {
    Array zeros;
    zeros.assign(values.size(), 0.0F);
    values = zeros.reshaped(values.shape());
  });
  EXPECT_EQ(assigned,
            with([](const HookedPoint&, Array& values) { std::ranges::fill(values, 0.0F); }));
  EXPECT_NE(assigned, run(starter_model(), {tokens}));
  try {
    with([](const HookedPoint&, Array& values) { values.assign(3, 0.0F); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("left values of shape (3), expected (1, "));
  }
}

TEST(Hooks, EndAPassByThrowing) {
  const std::vector<std::int32_t> tokens = some_tokens();
  const Array logits = run(starter_model(), {tokens});
  EXPECT_THROW(run(starter_model(), {tokens},
                   {.hooks = {{"z2", [](const HookedPoint&, Array&) { throw 7; }}}}),
               int);
  EXPECT_THROW(run(starter_model(), {tokens}, {.poll = [] { throw 7; }}), int);
  EXPECT_EQ(run(starter_model(), {tokens}), logits);
}

TEST(GenerationSteps, EqualAGeneration) {
  const std::vector<std::int32_t> prompt = some_tokens();
  const Model::GenerateOptions options{.max_new_tokens = 12, .sampling = {.seed = 3}};
  const Model::Generation whole = starter_model().generate(prompt, options);
  GenerationSteps steps(starter_model(), prompt, options);
  std::string text;
  EXPECT_EQ(steps.generation().finish_reason, "");
  while (const auto step = steps.next()) text += step->text;
  EXPECT_EQ(text, whole.text);
  EXPECT_EQ(steps.generation().tokens, whole.tokens);
  EXPECT_EQ(steps.generation().finish_reason, whole.finish_reason);
  EXPECT_FALSE(steps.next());
}

TEST(Weights, AreViewsOfOneArena) {
  const Model& model = starter_model();
  const SharedView all = weight(model, "attn.W_Q"), second = weight(model, "blocks.1.attn.W_Q");
  EXPECT_THAT(all.shape, ElementsAre(6, 6, 192, 32));
  EXPECT_EQ(all.data + all.strides[0], second.data);
  EXPECT_TRUE(computes_with_views(model));
  EXPECT_FALSE(computes_with_views(Model::load("starter", {.weights = WeightType::int8})));
  try {
    weight(model, "W_Z");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("did you mean"));
  }
}

TEST(Stacks, SumToTheStreamAndTheLogits) {
  const std::vector<std::int32_t> tokens = some_tokens();
  const Activations found = record(starter_model(), {tokens});
  const ResidualStack parts = decomposed_residual(found, {.positions = {-1}});
  EXPECT_EQ(parts.labels.size(), 2U + 12U);
  const ResidualStack stream = accumulated_residual(found, {.positions = {-1}});
  EXPECT_EQ(stream.labels.back(), "final_post");
  const std::int64_t channels = 192;
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (std::size_t part = 0; part < parts.labels.size(); ++part) {
      sum += parts.values[part * channels + static_cast<std::size_t>(c)];
    }
    // 14 sums, each within 2^-24 of the stream's numbers, which are below 100
    EXPECT_NEAR(sum, stream.values[6 * channels + static_cast<std::size_t>(c)], 1e-4);
  }
  EXPECT_THROW(accumulated_residual(found, {.layer = 7}), Error);
  EXPECT_THROW(logit_contributions(found, parts.values, {.tokens = {1}}), Error);
}

// Neurons, heads, embeddings and biases; and of all layers, what is left is nothing.
TEST(Stacks, SumToTheStreamNeuronByNeuron) {
  const Activations found = record(starter_model(), {some_tokens()});
  for (const bool in_middle : {false, true}) {
    const StackRequest request{.layer = 2, .before_feed_forward = in_middle, .positions = {1, -1}};
    const SharedView stream =
        found.at(in_middle ? "blocks.2.hook_resid_mid" : "blocks.2.hook_resid_pre");
    for (const FeedForwardUnit unit : {FeedForwardUnit::neuron, FeedForwardUnit::layer}) {
      const ResidualStack parts = full_decomposition(found, request, unit);
      EXPECT_EQ(parts.labels.back(), "bias");
      const std::int64_t size = 2 * 192, last = found.positions() - 1;
      for (std::int64_t c = 0; c < 192; ++c) {
        double sum = 0;
        for (std::size_t part = 0; part < parts.labels.size(); ++part) {
          sum += parts.values[part * size + static_cast<std::size_t>(192 + c)];
        }
        // Some 1,500 sums, each within 2^-24 of numbers below 10
        EXPECT_NEAR(sum, stream.data[last * stream.strides[1] + c], 1e-4);
      }
    }
  }
  const ResidualStack few =
      neuron_results(found, {.layer = 3, .positions = {-1}}, {.first_layer = 2, .neurons = {7, 5}});
  EXPECT_THAT(few.labels, ElementsAre("L2N7", "L2N5"));
  const SharedView post = found.at("blocks.2.mlp.hook_post");
  const SharedView out = weight(starter_model(), "blocks.2.mlp.W_out");  // (F, C)
  const float value = post.data[(found.positions() - 1) * post.strides[1] + 5];
  for (std::int64_t c = 0; c < 192; ++c) {
    EXPECT_EQ(few.values[static_cast<std::size_t>(192 + c)],
              value * out.data[5 * out.strides[0] + c * out.strides[1]]);
  }
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { neuron_results(found, {.layer = 1}, {.neurons = {768}}); },
      "has neurons 0 to 767");
}

// Arrays of the caller's: of a pass, of which head results follow; of others, which have none; and
// of a wrong shape.
TEST(Stacks, OfArrays) {
  const Activations found = record(starter_model(), {some_tokens()});
  const std::int64_t positions = found.positions();
  GivenActivations given{.arrays = {}, .lengths = {positions}};
  for (const char* const name : {"hook_embed", "hook_pos_embed", "blocks.0.attn.hook_z",
                                 "blocks.0.hook_attn_out", "blocks.0.hook_mlp_out"}) {
    given.arrays.emplace(name, Array(found.shape(name), elements(found.at(name))));
  }
  const Activations arrays = activations_from(starter_model(), given);
  const StackRequest first{.layer = 1};
  EXPECT_EQ(decomposed_residual(arrays, first).values, decomposed_residual(found, first).values);
  EXPECT_EQ(head_results(arrays, first).values, head_results(found, first).values);

  given.kind = GivenActivations::Kind::others;
  given.arrays.erase("hook_pos_embed");
  const Activations others = activations_from(starter_model(), given);
  EXPECT_THAT(decomposed_residual(others, first).labels,
              ElementsAre("embed", "0_attn_out", "0_mlp_out"));
  testing::expect_error(
      ErrorCode::not_found, [&] { head_results(others, first); }, "hook_result");

  given.kind = GivenActivations::Kind::of_pass;
  testing::expect_error(
      ErrorCode::not_found,
      [&] { decomposed_residual(activations_from(starter_model(), given), first); },
      "hook_pos_embed");
  given.arrays["blocks.0.hook_mlp_out"] =
      Array({1, positions, 3}, std::vector<float>(3 * positions));
  given.kind = GivenActivations::Kind::others;
  testing::expect_error(
      ErrorCode::invalid_argument,
      [&] { decomposed_residual(activations_from(starter_model(), given), first); },
      "'blocks.0.hook_mlp_out' has the shape");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { activations_from(starter_model(), {}); },
      "are not the lengths");
}

TEST(Detection, NamesItsPatterns) {
  const std::vector<std::int32_t> tokens{5, 6, 5, 6};
  EXPECT_THAT(detection_pattern("induction_head", tokens).vector(),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0));
  EXPECT_THROW(detection_pattern("other", tokens), Error);
}

TEST(Tokens, OfATextAndItsParts) {
  EXPECT_EQ(part_tokens(starter_model(), " blue").size(), 1U);
  EXPECT_TRUE(end_token(starter_model()).has_value());
  const TextTokenizer tokenizer = TextTokenizer::load("starter");
  EXPECT_EQ(tokenizer.encode("A fluffy blue creature roamed the verdant forest."), some_tokens());
}

TEST(MicroworldStories, AreJson) {
  EXPECT_THAT(microworld_story(5, 0, {"mystery"}), HasSubstr("\"culprit\""));
  EXPECT_THROW(microworld_story(5, 0, {"saga"}), Error);
}

// Largest difference of a point of one sequence of a batch from the same of it alone, by the
// largest number there.
double batch_error(const SharedView& batch, std::int64_t b, const SharedView& alone) {
  double difference = 0, largest = 0;
  for (std::int64_t t = 0; t < alone.shape[1]; ++t) {
    for (std::int64_t c = 0; c < alone.shape.back(); ++c) {
      const double found = batch.data[b * batch.strides[0] + t * batch.strides[1] + c];
      const double wanted = alone.data[t * alone.strides[1] + c];
      difference = std::max(difference, std::abs(found - wanted));
      largest = std::max(largest, std::abs(wanted));
    }
  }
  return difference / largest;
}

TEST(Activations, OfTextsOfDifferentLengths) {
  const std::vector<std::int32_t> first = some_tokens(), second{first.begin(), first.begin() + 4};
  std::vector<std::int32_t> both = second;
  both.insert(both.end(), first.begin(), first.end());
  const std::int64_t lengths[] = {4, std::ssize(first)};
  const TokenBatch batch{.tokens = both, .sequences = 2, .lengths = lengths};
  const Activations found = record(starter_model(), batch);
  const Activations short_one = record(starter_model(), {second}),
                    long_one = record(starter_model(), {first});
  EXPECT_THAT(found.lengths(), ElementsAre(4, std::ssize(first)));
  EXPECT_THAT(found.source_lengths(), ElementsAre());
  ASSERT_EQ(found.tokens().size(), 2 * first.size());
  EXPECT_EQ(found.tokens()[3], second[3]);
  EXPECT_EQ(found.tokens()[4], -1);
  const std::string name = "blocks.2.hook_resid_post";
  EXPECT_EQ(found.shape(name)[1], std::ssize(first));
  const SharedView values = found.at(name);
  // Sums of up to 4C = 1024 products, 12 of them one after the other: √1024·√12·2⁻²⁴ of the norm of
  // a row, of which the largest number is a good part.
  EXPECT_LE(batch_error(values, 0, short_one.at(name)), 1e-5);
  EXPECT_LE(batch_error(values, 1, long_one.at(name)), 1e-5);
  EXPECT_EQ(values.data[4 * values.strides[1]], 0);  // after the end of the first
  const Array losses = next_token_losses(starter_model(), batch);
  const Array alone = next_token_losses(starter_model(), {second});
  ASSERT_EQ(losses.shape(), (std::vector<std::int64_t>{2, std::ssize(first) - 1}));
  for (std::size_t t = 0; t < 3; ++t) EXPECT_NEAR(losses[t], alone[t], 1e-4);
  EXPECT_EQ(losses[3], 0);

  const auto refused = [&](const TokenBatch& wrong, const char* says) {
    testing::expect_error(
        ErrorCode::invalid_argument, [&] { run(starter_model(), wrong); }, says);
  };
  refused({.tokens = both, .sequences = 4}, "are not 4 sequences of one length");
  refused({.tokens = both, .sequences = 3, .lengths = lengths}, "3 sequences of the lengths 4, ");
  const std::int64_t longer[] = {4, std::ssize(first) + 1}, none[] = {0, std::ssize(both)};
  refused({.tokens = both, .sequences = 2, .lengths = longer}, "sequences of the lengths 4, ");
  refused({.tokens = both, .sequences = 2, .lengths = none}, "sequences of the lengths 0, ");
}

// The gradients of a point, of a target.
std::vector<float> gradient_at(const std::string& point, const RunOptions& options,
                               const TokenBatch& batch) {
  const std::string name = point + "_grad";
  const Activations found =
      record(starter_model(), batch, {.points = {name}, .logits = false}, options);
  return elements(found.at(name));
}

TEST(Metrics, WeightsOfLogitsAndOfPointsAreDifferentiated) {
  const std::vector<std::int32_t> tokens = some_tokens();
  const Array logits = run(starter_model(), {tokens});
  const std::int64_t last = logits.shape()[1] - 1, vocabulary = logits.shape()[2];
  const std::string point = "blocks.0.hook_resid_pre";
  const std::vector<float> wanted = gradient_at(
      point, {.target = {.logits = {{.position = -1, .token = 7, .weight = 2}}}}, {tokens});
  Array weights(logits.shape(), std::vector<float>(logits.size()));
  weights[static_cast<std::size_t>(last * vocabulary + 7)] = 2;
  const auto expect_wanted = [&](const RunOptions& options) {
    const std::vector<float> found = gradient_at(point, options, {tokens});
    ASSERT_EQ(found.size(), wanted.size());
    float largest = 0;
    for (const float value : wanted) largest = std::max(largest, std::abs(value));
    ASSERT_GT(largest, 0);
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], wanted[i], 1e-5F * largest);  // sums in another order
    }
  };
  expect_wanted({.target = {.logit_weights = weights}});
  expect_wanted({.metric = [&](const Array& own) {
    EXPECT_EQ(own, logits);
    return weights;
  }});
  // What a stream is weighted by is its gradient, where nothing follows.
  const Activations found = record(starter_model(), {tokens}, {.points = {"resid_post2"}});
  const Array ones(found.shape("blocks.2.hook_resid_post"),
                   std::vector<float>(elements(found.at("blocks.2.hook_resid_post")).size(), 1));
  EXPECT_EQ(gradient_at("blocks.2.hook_resid_post",
                        {.target = {.points = {{"resid_post2", ones}}}, .layer_end = 3}, {tokens}),
            ones.vector());
}

TEST(Metrics, APartOfTheLayersIsComputed) {
  const std::vector<std::int32_t> tokens = some_tokens();
  const Activations whole = record(starter_model(), {tokens});
  const Array stream = run(starter_model(), {tokens}, {.layer_end = 2});
  EXPECT_EQ(stream.vector(), elements(whole.at("blocks.2.hook_resid_pre")));
  const RunOptions from{.layer_begin = 2, .stream = stream};
  EXPECT_EQ(run(starter_model(), {tokens}, from), whole.logits());
  const auto refused = [](ErrorCode code, const char* part, const auto& call) {
    testing::expect_error(code, call, part);
  };
  refused(ErrorCode::unsupported, "needs its tokens and all layers",
          [&] { next_token_losses(starter_model(), {tokens}, from); });
  refused(ErrorCode::unsupported, "needs its tokens and all layers",
          [&] { next_token_losses(starter_model(), {tokens}, {.layer_end = 2}); });
  refused(ErrorCode::invalid_argument, "has read no tokens",
          [&] { gradient_at("blocks.3.hook_resid_pre", from, {tokens}); });
  refused(ErrorCode::invalid_argument, "needs the stream",
          [&] { run(starter_model(), {tokens}, {.layer_begin = 2}); });
  refused(ErrorCode::invalid_argument, "layers [0, 9)",
          [&] { run(starter_model(), {tokens}, {.layer_end = 9}); });
}

}  // namespace
}  // namespace heed
