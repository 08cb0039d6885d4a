#include "heed/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/generations.h"
#include "heed/explain.h"
#include "heed/heed.h"
#include "microscope/traces/activation_trace.h"
#include "support/gpt2_names.h"
#include "support/small_model.h"
#include "support/trace_step.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::int32_t> tokens{3, 17, 4, 11, 5, 3, 9};

std::string refusal(const TraceRequest& request) {
  const Transformer transformer = testing::small_gpt(20);
  try {
    trace_prompt(transformer, tokens, request);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "nothing was refused";
}

TEST(Trace, HoldsThePartThatWasAskedFor) {
  const Transformer transformer = testing::small_gpt(20);
  const Trace whole = trace_prompt(transformer, tokens, {.points = {"*"}});
  EXPECT_EQ(whole.arrays.size(), 6U + 2U * 23U);
  const Trace part = trace_prompt(transformer, tokens,
                                  {.points = {"z", "pattern", "hook_resid_post", "ln_final.*"},
                                   .layers = {1},
                                   .heads = {2, 0},
                                   .positions = {-1, 2}});
  std::vector<std::string> names;
  for (const TracedArray& array : part.arrays) names.push_back(array.name);
  EXPECT_THAT(names, ElementsAre("blocks.1.attn.hook_pattern", "blocks.1.attn.hook_z",
                                 "blocks.1.hook_resid_post", "ln_final.hook_scale",
                                 "ln_final.hook_normalized"));

  const TracedArray& z = part.at("blocks.1.attn.hook_z");
  EXPECT_THAT(z.shape, ElementsAre(1, 2, 2, 8));
  const TracedArray& whole_z = whole.at("blocks.1.attn.hook_z");  // (1, 7, 3, 8)
  const TracedArray& pattern = part.at("blocks.1.attn.hook_pattern");
  EXPECT_THAT(pattern.shape, ElementsAre(1, 2, 2, 7));
  const TracedArray& whole_pattern = whole.at("blocks.1.attn.hook_pattern");  // (1, 3, 7, 7)
  const std::int64_t positions[] = {2, 6}, heads[] = {0, 2};
  for (std::int64_t t = 0; t < 2; ++t) {
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t d = 0; d < 8; ++d) {
        EXPECT_EQ(z.values[(t * 2 + h) * 8 + d],
                  whole_z.values[(positions[t] * 3 + heads[h]) * 8 + d]);
      }
      for (std::int64_t s = 0; s < 7; ++s) {
        EXPECT_EQ(pattern.values[(h * 2 + t) * 7 + s],
                  whole_pattern.values[(heads[h] * 7 + positions[t]) * 7 + s]);
      }
    }
  }
}

TEST(Trace, IsTheSameWhenItGrowsStepByStep) {
  const Transformer transformer = testing::small_gpt(20);
  const TraceRequest request{.points = {"*"}, .positions = {1, 4, 7, 9}};
  const Trace grown = trace_generation(transformer, std::span(tokens).first(5), 5, request);
  // The text that was generated, read again in one pass.
  std::vector<std::int32_t> text(tokens.begin(), tokens.begin() + 5);
  for (int i = 0; i < 5; ++i) {
    Tensor<float> logits(Shape{1, 20});
    const auto positions = std::ssize(text);
    const StackActivations activations(transformer.specification(), 1, positions, Keep::one_block);
    transformer.forward({text.data(), {1, positions}}, {.sequences = {1, positions}}, activations);
    transformer.project(activations.final_norm().slice(0, positions - 1, positions), logits);
    text.push_back(
        static_cast<std::int32_t>(std::ranges::max_element(logits.span()) - logits.span().begin()));
  }
  const Trace whole = trace_prompt(transformer, text, request);
  ASSERT_EQ(grown.arrays.size(), whole.arrays.size());
  EXPECT_EQ(grown.tokens, text);
  EXPECT_EQ(whole.tokens, text);
  for (std::size_t i = 0; i < whole.arrays.size(); ++i) {
    const TracedArray& actual = grown.arrays[i];
    const TracedArray& expected = whole.arrays[i];
    EXPECT_EQ(actual.name, expected.name);
    ASSERT_EQ(actual.shape, expected.shape) << actual.name;
    for (std::size_t j = 0; j < expected.values.size(); ++j) {
      if (std::isinf(expected.values[j])) {
        ASSERT_EQ(actual.values[j], expected.values[j]) << actual.name << " " << j;
      } else {
        // the same sums in another order, a few times as large as the values themselves
        ASSERT_NEAR(actual.values[j], expected.values[j], 1e-5 * (1 + std::abs(expected.values[j])))
            << actual.name << " " << j;
      }
    }
  }
}

TEST(Trace, AGenerationThatEndsEarlyIsCutWhereItEnded) {
  const Transformer transformer = testing::small_gpt(20);
  ActivationTrace probe(transformer.architecture(),
                        {.points = {"resid_pre0", "pattern1"}, .positions = {0, 2, 6}},
                        {.positions = 7});
  const StackActivations activations(transformer.specification(), 1, 4, Keep::one_block);
  transformer.forward({tokens.data(), {1, 4}}, {.sequences = {1, 4}, .probe = &probe}, activations);
  const Trace cut = probe.take();
  const Trace whole = trace_prompt(transformer, std::span(tokens).first(4),
                                   {.points = {"resid_pre0", "pattern1"}, .positions = {0, 2}});
  ASSERT_EQ(cut.arrays.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(cut.arrays[i].shape, whole.arrays[i].shape);
    EXPECT_EQ(cut.arrays[i].values, whole.arrays[i].values);
  }
}

TEST(Trace, GradientsOfALogitDifferenceAreItsSlopes) {
  Transformer transformer = testing::small_gpt(20);
  const GradientTarget target{
      {{.position = -1, .token = 7}, {.position = -1, .token = 2, .weight = -1}}};
  const Trace trace =
      trace_prompt(transformer, tokens, {.points = {"embed_grad", "resid_post1_grad"}}, target);
  EXPECT_EQ(trace.arrays.size(), 2U);
  EXPECT_EQ(trace.arrays[0].name, "hook_embed_grad");
  const std::vector<float>& gradient = trace.at("hook_embed_grad").values;

  const auto difference = [&] {
    const StackActivations activations(transformer.specification(), 1, 7, Keep::one_block);
    transformer.forward({tokens.data(), {1, 7}}, {.sequences = {1, 7}}, activations);
    Tensor<float> logits(Shape{1, 20});
    transformer.project(activations.final_norm().slice(0, 6, 7), logits);
    return static_cast<double>(logits[7]) - logits[2];
  };
  // Position 3 is where its position embedding alone is added: to move that is to move the stream.
  for (std::int64_t channel = 0; channel < 24; ++channel) {
    float& moved =
        transformer.parameters().tensor(testing::gpt2_parameter("wpe.weight"))(3, channel);
    const float before = moved;
    constexpr float step = 1e-2F;
    moved = before + step;
    const double above = difference();
    moved = before - step;
    const double below = difference();
    moved = before;
    // f32 logits of size ten are known to 1e-6, and the slope to that over the step
    EXPECT_NEAR(gradient[3 * 24 + channel], (above - below) / (2 * step), 2e-2) << channel;
  }
}

TEST(Trace, RefusesGradientsOfWhatIsNotThere) {
  const Transformer transformer = testing::small_gpt(20);
  const TraceRequest request{.points = {"embed_grad"}};
  EXPECT_THROW(trace_prompt(transformer, tokens, request, {{{.position = 0, .token = 20}}}), Error);
  EXPECT_THROW(trace_prompt(transformer, tokens, request, {{{.position = 7, .token = 1}}}), Error);
  EXPECT_THROW(trace_prompt(transformer, std::span(tokens).first(1), request), Error);
  EXPECT_THROW(trace_generation(transformer, tokens, 2, request), Error);
}

TEST(Trace, GradientsOfTheLossAreThoseOfAStep) {
  const Transformer transformer = testing::small_gpt(20);
  const TraceRequest request{.points = {"*_grad", "resid_mid"}};
  const Trace prompt = trace_prompt(transformer, tokens, request);
  std::vector<std::int32_t> next(tokens.begin() + 1, tokens.end());
  next.push_back(kernels::ignored_target);
  const Trace step =
      testing::trace_step(transformer, {tokens.data(), {1, 7}}, {next.data(), {1, 7}}, request);
  ASSERT_EQ(prompt.arrays.size(), 2U + 6U + 2U * 23U);
  ASSERT_EQ(prompt.arrays.size(), step.arrays.size());
  for (std::size_t i = 0; i < step.arrays.size(); ++i) {
    EXPECT_EQ(prompt.arrays[i].name, step.arrays[i].name);
    EXPECT_EQ(prompt.arrays[i].values, step.arrays[i].values) << prompt.arrays[i].name;
  }
}

TEST(Trace, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(refusal({.points = {"blocks.0.hook_resid_pro"}}),
              HasSubstr("'blocks.0.hook_resid_pre'"));
  EXPECT_THAT(refusal({.points = {"blocks.*.hook_resid_pro"}}),
              HasSubstr("'blocks.*.hook_resid_pre'"));
  EXPECT_THAT(refusal({.points = {"blocks.7.attn.hook_q"}}), HasSubstr("2 layers"));
  EXPECT_THAT(refusal({.points = {"patern"}}), HasSubstr("'pattern'"));
  EXPECT_THAT(refusal({.points = {"k6"}}), HasSubstr("2 layers"));
  EXPECT_THAT(refusal({.points = {"q"}, .layers = {2}}), HasSubstr("layer 2 does not exist"));
  EXPECT_THAT(refusal({.points = {"q"}, .heads = {3}}), HasSubstr("heads 0 to 2"));
  EXPECT_THAT(refusal({.points = {"q"}, .positions = {7}}), HasSubstr("positions 0 to 6"));
  EXPECT_THAT(refusal({.points = {"q"}, .positions = {-8}}), HasSubstr("position -8"));
  EXPECT_THAT(refusal({.points = {}}), HasSubstr("no point"));
}

TEST(Trace, RefusesWhatExceedsItsBudgetWithTheSizeThatItNeeds) {
  // 2 layers of 7 positions of 24 channels: 1344 bytes
  const Transformer transformer = testing::small_gpt(20);
  EXPECT_EQ(
      trace_prompt(transformer, tokens, {.points = {"resid_pre"}, .budget = 1344}).arrays.size(),
      2U);
  EXPECT_THAT(refusal({.points = {"resid_pre"}, .budget = 1343}),
              HasSubstr("needs 1344 bytes, more than its budget of 1343 bytes"));
}

// What a point needs beyond the part that is kept counts too: 4 bytes for each of 7 positions, 3
// heads and 24 channels, or 20 tokens of the vocabulary.
TEST(Trace, CountsWhatAPointNeedsWhileItIsComputed) {
  const Transformer transformer = testing::small_gpt(20);
  EXPECT_THAT(refusal({.points = {"result1"}, .heads = {0}, .positions = {6}, .budget = 2111}),
              HasSubstr("needs 2112 bytes"));
  EXPECT_THAT(refusal({.points = {"logits"}, .positions = {6}, .budget = 639}),
              HasSubstr("needs 640 bytes"));
}

TEST(Trace, TakesPartsOfTheStreamHeadByHead) {
  const Transformer transformer = testing::small_gpt(20);
  const Trace trace = trace_prompt(transformer, tokens,
                                   {.points = {"q_input1", "mlp_in0", "result0", "result0_grad"},
                                    .heads = {2},
                                    .positions = {-1}});
  EXPECT_EQ(trace.at("blocks.1.hook_q_input").shape, (std::vector<std::int64_t>{1, 1, 1, 24}));
  EXPECT_EQ(trace.at("blocks.0.hook_mlp_in").shape, (std::vector<std::int64_t>{1, 1, 24}));
  EXPECT_EQ(trace.at("blocks.0.attn.hook_result").shape, (std::vector<std::int64_t>{1, 1, 1, 24}));
  EXPECT_EQ(trace.at("blocks.0.attn.hook_result_grad").shape,
            (std::vector<std::int64_t>{1, 1, 1, 24}));
  const Trace whole =
      trace_prompt(transformer, tokens, {.points = {"resid_pre1"}, .positions = {-1}});
  EXPECT_EQ(trace.at("blocks.1.hook_q_input").values, whole.arrays[0].values);
}

// Of a logit, the gradient is its weight; of the loss, probabilities less the token that came.
TEST(Trace, TakesTheGradientOfLogits) {
  const Transformer transformer = testing::small_gpt(20);
  const Trace of_logit = trace_prompt(transformer, tokens, {.points = {"logits_grad"}},
                                      {{{.position = 3, .token = 5, .weight = -2}}});
  const Trace of_loss = trace_prompt(transformer, tokens, {.points = {"logits", "logits_grad"}});
  for (std::int64_t i = 0; i < 7 * 20; ++i) {
    EXPECT_EQ(of_logit.arrays[0].values[i], i == 3 * 20 + 5 ? -2 : 0);
  }
  for (std::int64_t t = 0; t < 7; ++t) {
    const float* const logits = of_loss.arrays[0].values.data() + t * 20;
    double sum = 0;
    for (std::int64_t v = 0; v < 20; ++v) sum += std::exp(double{logits[v]});
    for (std::int64_t v = 0; v < 20; ++v) {
      const double came = t < 6 && tokens[t + 1] == v ? 1 : 0;
      const double expected = t < 6 ? (std::exp(double{logits[v]}) / sum - came) / 6 : 0;
      EXPECT_NEAR(of_loss.arrays[1].values[t * 20 + v], expected, 1e-6);
    }
  }
}

TEST(Trace, IsPartOfTheLibrary) {
  const testing::ScratchDirectory directory;
  testing::write_small_model(directory.path());
  const Model model = Model::load(directory.path());
  const auto ids = model.encode("A mole");
  const Trace trace = model.trace(ids, TraceRequest{.points = {"resid_pre1"}});
  EXPECT_EQ(trace.at("blocks.1.hook_resid_pre").shape[1], std::ssize(ids));
  EXPECT_THROW(trace.at("blocks.0.hook_resid_pre"), Error);
  const Trace generated = model.trace_generation(ids, 3, {.points = {"resid_pre1"}});
  EXPECT_EQ(generated.arrays[0].shape[1], std::ssize(ids) + 3);
}

TEST(AttentionReader, AnswersAsTheWholePatternWould) {
  const testing::ScratchDirectory directory;
  testing::write_small_model(directory.path());
  const Model model = Model::load(directory.path());
  const auto ids = model.encode("A mole met a fluffy blue creature in the forest.");
  const Model::Attention whole = model.attention(ids);
  AttentionReader reader = model.read_attention(ids, {1});
  EXPECT_EQ(reader.positions(), whole.tokens);
  EXPECT_EQ(reader.levels(), 1);
  reader.prepare(1, 2);
  const AttentionReader::Cells tile = reader.tile({.layer = 1, .head = 2});
  ASSERT_EQ(tile.rows, whole.tokens);
  for (std::int64_t t = 0; t < whole.tokens; ++t) {
    for (std::int64_t s = 0; s < whole.tokens; ++s) {
      EXPECT_NEAR(tile.values[t * tile.columns + s], whole.weight(1, 2, t, s), 1e-6);
    }
  }
  const auto attended = reader.most_attended(1, 2, whole.tokens - 1, 1);
  const std::vector<float> row = reader.row(1, 2, whole.tokens - 1);
  EXPECT_EQ(attended[0].weight, std::ranges::max(row));
  EXPECT_EQ(reader.most_attending(1, 2, 0, 3).size(), 3U);
  EXPECT_EQ(std::ssize(reader.column(1, 2, 3)), whole.tokens);
  EXPECT_THROW(reader.tile({.layer = 0}), Error);
  EXPECT_THROW(reader.tile({.layer = 1, .head = 3}), Error);

  const auto statistics = heed::heads(model, {.target = ids});
  ASSERT_EQ(statistics.size(), 6U);
  double first = 0;
  for (std::int64_t t = 1; t < whole.tokens; ++t) first += whole.weight(1, 2, t, 0);
  EXPECT_NEAR(statistics[5].first, first / static_cast<double>(whole.tokens - 1), 1e-5);
}

}  // namespace
}  // namespace heed
