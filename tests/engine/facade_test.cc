// Arrays, options of loading, the architecture and evaluations of the public interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/expect_error.h"
#include "base/files.h"
#include "engine/loaded_model.h"
#include "generate/token_scores.h"
#include "heed/evaluate.h"
#include "heed/intervention.h"
#include "support/small_model.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

TEST(Array, SharesItsElements) {
  Array array({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const Array copy = array;
  EXPECT_EQ(copy.data(), array.data());
  const std::shared_ptr<float[]> memory = array.owner();
  array.assign(1, 7);
  EXPECT_EQ(memory[5], 6) << "kept by its owner";
  EXPECT_THAT(copy.vector(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(copy.shape(), ElementsAre(2, 3));
  EXPECT_THAT(array.shape(), ElementsAre(1));
  const Array flat = copy.reshaped({6});
  EXPECT_EQ(flat.data(), copy.data());
  EXPECT_NE(flat, copy);
  EXPECT_EQ(flat, Array(std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(Array().empty());
}

TEST(Array, RefusesOtherShapes) {
  const Array array(std::vector<float>(6));
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        return array.reshaped({2, 4});
      },
      "6", "8");
  expect_error(
      ErrorCode::invalid_argument, [] { return Array({-1}, std::vector<float>{}); }, "-1");
  const std::int64_t huge = std::int64_t{1} << 40;
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        return Array({huge, huge}, std::vector<float>{});
      },
      "more elements");
  expect_error(
      ErrorCode::invalid_argument, [] { return Array({2}, std::shared_ptr<float[]>()); }, "memory");
}

class FacadeTest : public testing::SmallModelTest {
 protected:
  std::string path() const { return directory_->path().string(); }

  Model model = Model::load(directory_->path());
  std::vector<std::int32_t> tokens = model.encode("A fluffy mole.");
};

TEST_F(FacadeTest, LogitsOfEveryPosition) {
  const Array all = model.all_logits(tokens);
  const std::int64_t vocabulary = model.dimensions().vocabulary;
  EXPECT_THAT(all.shape(), ElementsAre(std::ssize(tokens), vocabulary));
  const Array last = model.logits(tokens);
  const float* const row = all.end() - vocabulary;
  // One row and several are multiplied by different kernels; logits are of order ten, and a sum of
  // 24 products is exact to 24 · 2^-24 of that.
  for (std::int64_t v = 0; v < vocabulary; ++v) EXPECT_NEAR(row[v], last[v], 2e-5);
  const std::size_t width = static_cast<std::size_t>(vocabulary);
  const auto next = model.predict(std::span(tokens).first(1), {}, 3);
  const auto ranked = model.rank(std::span<const float>(all).first(width), {}, {}, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ranked[i].token, next[i].token);
    EXPECT_EQ(ranked[i].rank, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(ranked[i].probability_after[1], ranked[i].probability) << "without a penalty";
  }
  expect_error(
      ErrorCode::invalid_argument, [&] { return model.rank(std::span<const float>(all), {}, {}); },
      "logits");
}

TEST_F(FacadeTest, EmbeddingsAreWhatTheUnembeddingReads) {
  const Array states = model.embeddings(tokens);
  EXPECT_THAT(states.shape(), ElementsAre(std::ssize(tokens), 24));
  const LoadedModel loaded = load_model(path());
  const View<const float> unembedding = loaded.transformer.parameters().unembedding().weight;
  const Array all = model.all_logits(tokens);
  for (std::int64_t v = 0; v < 5; ++v) {
    const float* const state = states.end() - 24;
    const double logit = std::inner_product(state, state + 24, &unembedding(v, 0), 0.0);
    EXPECT_NEAR(logit, (all.end() - model.dimensions().vocabulary)[v], 2e-5);
  }
}

TEST_F(FacadeTest, TracesHaveShapes) {
  const Trace trace = model.trace(tokens, {.points = {"resid_pre1", "pattern0"}});
  for (const TracedArray& array : trace.arrays) EXPECT_EQ(array.values.shape(), array.shape);
  EXPECT_THAT(model.attention(tokens).weights.shape(),
              ElementsAre(2, 3, std::ssize(tokens), std::ssize(tokens)));
}

TEST_F(FacadeTest, EditedLogitsOfEveryPosition) {
  const EditedModel edited(model, {{.where = "L0H1", .change = SetZero{}}});
  EXPECT_NE(edited.all_logits(tokens), model.all_logits(tokens));
  EXPECT_NE(edited.embeddings(tokens), model.embeddings(tokens));
  EXPECT_EQ(EditedModel(model, {}).embeddings(tokens), model.embeddings(tokens));
}

TEST_F(FacadeTest, LoadsWeightsAndCachesQuantised) {
  EXPECT_EQ(model.architecture().weights, "f32");
  const Array exact = model.logits(tokens);
  const auto of = [&](const LoadOptions& options) {
    return Model::load(path(), options).logits(tokens);
  };
  EXPECT_EQ(of({.weights = WeightType::f32}), exact);
  EXPECT_EQ(Model::load(path(), {.weights = WeightType::int8}).architecture().weights, "int8");
  std::vector<Array> quantised;
  for (const WeightType type : {WeightType::bf16, WeightType::int8, WeightType::int4}) {
    quantised.push_back(of({.weights = type}));
  }
  for (const KeyValueType type : {KeyValueType::bf16, KeyValueType::int8}) {
    quantised.push_back(of({.cache = type}));
  }
  for (std::size_t i = 0; i < quantised.size(); ++i) {
    EXPECT_NE(quantised[i], exact);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(quantised[i], quantised[j]);
  }
  EXPECT_NO_THROW(of({.pack = true}));
  expect_error(ErrorCode::invalid_argument, [&] { of({.weights = static_cast<WeightType>(9)}); });
  expect_error(ErrorCode::invalid_argument, [&] { of({.cache = static_cast<KeyValueType>(9)}); });
}

TEST_F(FacadeTest, DescribesAnyFamily) {
  const ModelArchitecture gpt2 = model.architecture();
  EXPECT_EQ(gpt2.positions, "learned");
  EXPECT_EQ(gpt2.norm, "layer");
  EXPECT_EQ(gpt2.query_heads, 3);
  EXPECT_EQ(gpt2.key_value_heads, 3);
  EXPECT_EQ(gpt2.parameters, model.dimensions().parameters);
  EXPECT_TRUE(gpt2.biases);
  EXPECT_FALSE(gpt2.gated);

  StackSpecification config = make_gpt_config(2, 4, 32, 64, 50);
  set_biases(config, Biases::none);
  config.tied_unembedding = false;
  config.block.norm = {.kind = NormKind::rms, .epsilon = 1e-6F, .bias = false};
  config.block.attention.key_value_heads = 2;
  config.block.attention.positions = PositionKind::rotary;
  config.block.attention.rotary.base = 500000;
  config.block.feed_forward = {
      .width = 80, .activation = Activation::silu, .gated = true, .bias = false};
  Transformer llama({.stacks = {config}});
  llama.parameters().initialize(1);
  const testing::ScratchDirectory scratch;
  save_transformer(llama, scratch.path());
  const Model other = Model::load(scratch.path());
  const ModelArchitecture found = other.architecture();
  EXPECT_EQ(found.positions, "rotary");
  EXPECT_EQ(found.rotary_base, 500000);
  EXPECT_EQ(found.rotary_channels, 8);
  EXPECT_EQ(found.norm, "rms");
  EXPECT_EQ(found.key_value_heads, 2);
  EXPECT_EQ(found.query_heads, 4);
  EXPECT_EQ(found.activation, "silu");
  EXPECT_EQ(found.feed_forward, 80);
  EXPECT_TRUE(found.gated);
  EXPECT_FALSE(found.biases);
  EXPECT_FALSE(found.tied_unembedding);
  EXPECT_THAT(found.windows, ElementsAre(0, 0));
  EXPECT_EQ(other.name(), scratch.path().filename().string());
}

TEST_F(FacadeTest, EvaluatesATokenAtATime) {
  const TextEvaluation found = evaluate_tokens(model, tokens);
  const Array all = model.all_logits(tokens);
  const auto width = static_cast<std::size_t>(model.dimensions().vocabulary);
  double sum = 0;
  ASSERT_EQ(found.losses.size(), tokens.size() - 1);
  for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
    const auto row = std::span<const float>(all).subspan(t * width, width);
    double total = 0;
    for (const float logit : row) total += std::exp(static_cast<double>(logit));
    const double loss = std::log(total) - row[static_cast<std::size_t>(tokens[t + 1])];
    // Logits of order ten in f32, summed in double.
    EXPECT_NEAR(found.losses[t], loss, 5e-5);
    sum += loss;
  }
  EXPECT_EQ(found.tokens, std::ssize(tokens) - 1);
  EXPECT_NEAR(found.loss, sum / static_cast<double>(found.tokens), 5e-5);
  EXPECT_DOUBLE_EQ(found.perplexity, std::exp(found.loss));
  EXPECT_FALSE(found.bits_per_byte.has_value());
}

TEST_F(FacadeTest, EvaluatesATextFromItsFirstWord) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "A fluffy mole dug in the garden. ";
  std::int64_t last_done = 0;
  const TextEvaluation whole = evaluate_text(
      model, text, {.window = 32, .progress = [&](std::int64_t done, std::int64_t total) {
                      EXPECT_LE(done, total);
                      last_done = done;
                    }});
  EXPECT_EQ(last_done, whole.tokens);
  EXPECT_EQ(whole.tokens, std::ssize(model.encode(text))) << "after an end of text";
  ASSERT_TRUE(whole.bits_per_byte.has_value());
  EXPECT_NEAR(*whole.bits_per_byte,
              whole.loss * static_cast<double>(whole.tokens) / std::log(2.0) /
                  static_cast<double>(text.size()),
              1e-12);
  const auto file = directory_->path() / "text.txt";
  write_text_file(file, text);
  EXPECT_EQ(evaluate_file(model, file, {.window = 32}).loss, whole.loss);
  const std::atomic<bool> stop{true};
  expect_error(ErrorCode::interrupted, [&] { evaluate_text(model, text, {.stop = &stop}); });
  expect_error(
      ErrorCode::not_found, [&] { evaluate_file(model, "/nowhere"); }, "/nowhere");
}

TEST_F(FacadeTest, RefusesWhatCannotBeEvaluated) {
  const std::vector<std::int32_t> one{1};
  expect_error(
      ErrorCode::invalid_argument, [&] { evaluate_tokens(model, one); }, "two");
  expect_error(ErrorCode::invalid_argument, [&] { evaluate_tokens(model, {}); });
  expect_error(
      ErrorCode::invalid_argument, [&] { evaluate_text(model, ""); }, "empty");
  const std::vector<std::int32_t> unknown{1, 99999};
  expect_error(ErrorCode::invalid_argument, [&] { evaluate_tokens(model, unknown); });
  expect_error(ErrorCode::invalid_argument,
               [&] { evaluate_tokens(model, tokens, {.window = 4096}); });
  expect_error(ErrorCode::invalid_argument, [&] { evaluate_tokens(model, tokens, {.batch = 0}); });
}

}  // namespace
}  // namespace heed
