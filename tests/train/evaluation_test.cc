#include "train/evaluation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "base/expect_error.h"

namespace heed {
namespace {

Transformer random_transformer() {
  Transformer transformer({.stacks = {make_gpt_config(2, 2, 16, 8, 13)}});
  transformer.parameters().initialize(3);
  for (float& value : transformer.parameters().all()) value *= 4;
  return transformer;
}

TokenList random_tokens(std::int64_t count) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>(i * i * 7 % 13));
  }
  return TokenList(tokens);
}

// The loss of target `index` from the `context` tokens before it, alone.
double loss_of(const Transformer& transformer, const TokenList& data, std::int64_t index,
               std::int64_t context) {
  EvaluationBuffers buffers(transformer.specification(), 1, context);
  Tensor<std::int32_t> tokens(Shape{1, context});
  Tensor<std::int32_t> targets(Shape{1, context});
  data.read(index - context, tokens.span());
  targets.fill(kernels::ignored_target);
  data.read(index, targets.span().last(1));
  return transformer.loss(tokens, targets, buffers).sum;
}

TEST(Evaluation, ScoresEveryTargetOnceWhateverTheStride) {
  const Transformer transformer = random_transformer();
  for (const std::int64_t tokens : {2, 8, 9, 10, 30, 33}) {
    for (const std::int64_t stride : {1, 3, 8}) {
      const TokenList data = random_tokens(tokens);
      std::vector<int> seen(static_cast<std::size_t>(tokens));
      Evaluator evaluator(transformer.specification(),
                          {.batch_size = 3,
                           .stride = stride,
                           .scored = [&](std::int64_t first, std::span<const float> losses) {
                             for (std::size_t i = 0; i < losses.size(); ++i) {
                               const auto index = first + static_cast<std::int64_t>(i);
                               ++seen[static_cast<std::size_t>(index)];
                               // How much context a target had follows from the stride.
                               const std::int64_t window =
                                   index <= 8 ? 0 : ((index - 8 + stride - 1) / stride) * stride;
                               EXPECT_NEAR(losses[i],
                                           loss_of(transformer, data, index, index - window), 1e-4);
                             }
                           }});
      const Evaluation evaluation = evaluator.evaluate(transformer, data);
      EXPECT_EQ(evaluation.tokens, tokens - 1);
      for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(seen[i], 1) << i;
    }
  }
}

// What stands beside a window does not change its numbers: 40 positions multiply as few rows alone
// and would as many in a batch, 80 as many rows in any.
TEST(Evaluation, IsEqualToTheBitForEveryBatch) {
  StackSpecification gpt2 = make_gpt_config(2, 4, 32, 96, 61);
  StackSpecification llama = gpt2;
  llama.block.norm = {.kind = NormKind::rms, .bias = false};
  llama.block.attention.key_value_heads = 2;
  llama.block.attention.positions = PositionKind::rotary;
  llama.block.feed_forward = {.width = 88, .activation = Activation::silu, .gated = true};
  set_biases(llama, Biases::none);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < 700; ++i) ids.push_back(static_cast<std::int32_t>(i * i * 7 % 61));
  const TokenList data(ids);
  for (const StackSpecification& config : {gpt2, llama}) {
    for (const auto format : {kernels::WeightFormat::f32, kernels::WeightFormat::bf16,
                              kernels::WeightFormat::int8, kernels::WeightFormat::int4}) {
      Transformer transformer({.stacks = {config}});
      transformer.parameters().initialize(3);
      for (float& value : transformer.parameters().all()) value *= 4;
      transformer.parameters().prepare(format);
      for (const std::int64_t length : {40, 80}) {
        std::vector<double> nats;
        for (const std::int64_t batch : {1, 3, 8}) {
          Evaluator evaluator(config, {.batch_size = batch, .sequence_length = length});
          nats.push_back(evaluator.evaluate(transformer, data).nats_per_token);
        }
        EXPECT_EQ(nats[1], nats[0]) << kernels::weight_format_name(format) << " " << length;
        EXPECT_EQ(nats[2], nats[0]) << kernels::weight_format_name(format) << " " << length;
      }
    }
  }
}

TEST(Evaluation, ReadsDocumentsFromTheirBeginning) {
  StackSpecification config = make_gpt_config(1, 2, 16, 8, 13);
  config.end_of_text = 0;
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(3);
  const TokenList data({5, 1, 2, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 6, 0});
  std::vector<std::pair<std::int64_t, std::size_t>> windows;
  Evaluator evaluator(config, {.windows = Windows::documents,
                               .scored = [&](std::int64_t first, std::span<const float> losses) {
                                 windows.emplace_back(first, losses.size());
                               }});
  EXPECT_EQ(evaluator.evaluate(transformer, data).tokens, 16);
  const std::vector<std::pair<std::int64_t, std::size_t>> expected{
      {1, 3}, {4, 8}, {12, 3}, {15, 2}};
  EXPECT_EQ(windows, expected);
}

TEST(Evaluation, StandardErrorIsThatOfTheMean) {
  const Transformer transformer = random_transformer();
  Evaluator evaluator(transformer.specification(), {});
  const Evaluation few = evaluator.evaluate(transformer, random_tokens(81));
  const Evaluation many = evaluator.evaluate(transformer, random_tokens(8001));
  ASSERT_TRUE(few.standard_error && many.standard_error);
  EXPECT_GT(*few.standard_error, 0);
  // The tokens repeat with period 13, so the windows' spread stays and the error falls as 1/√n.
  EXPECT_NEAR(*few.standard_error / *many.standard_error, 10, 4);
}

TEST(Evaluation, OneWindowHasNoStandardError) {
  const Transformer transformer = random_transformer();
  Evaluator evaluator(transformer.specification(), {});
  EXPECT_FALSE(evaluator.evaluate(transformer, random_tokens(2)).standard_error.has_value());
  EXPECT_FALSE(evaluator.evaluate(transformer, random_tokens(9)).standard_error.has_value());
  EXPECT_TRUE(evaluator.evaluate(transformer, random_tokens(10)).standard_error.has_value());
}

TEST(Evaluation, StopsBetweenBatches) {
  const Transformer transformer = random_transformer();
  std::atomic<bool> stop = false;
  int batches = 0;
  Evaluator evaluator(transformer.specification(),
                      {.batch_size = 2,
                       .progress = [&](const Progress&) { stop = ++batches == 3; },
                       .stop = &stop});
  testing::expect_error(
      ErrorCode::interrupted, [&] { evaluator.evaluate(transformer, random_tokens(801)); },
      "evaluating");
  EXPECT_EQ(batches, 3);  // of fifty
}

TEST(Evaluation, MeasuresWhatACacheCosts) {
  const Transformer transformer = random_transformer();
  const TokenList data = random_tokens(60);
  const auto loss = [&](std::optional<CacheType> type) {
    Evaluator evaluator(transformer.specification(), {.batch_size = 3, .cache_type = type});
    return evaluator.evaluate(transformer, data).nats_per_token;
  };
  const double plain = loss(std::nullopt);
  // Reads the same numbers from elsewhere: at most the order of sums differs.
  EXPECT_NEAR(loss(CacheType::f32), plain, 1e-6);
  for (const CacheType type : {CacheType::bf16, CacheType::int8}) {
    EXPECT_NE(loss(type), plain);
    EXPECT_NEAR(loss(type), plain, 0.02 * plain);  // steps are 2⁻⁸ and 1/127
  }
}

TEST(Evaluation, RefusesWhatCannotBe) {
  const Transformer transformer = random_transformer();
  testing::expect_error(
      ErrorCode::invalid_argument,
      [&] { Evaluator(transformer.specification(), {.sequence_length = 9}); }, "9", "8");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { Evaluator(transformer.specification(), {.stride = 12}); },
      "stride of 12");
  Evaluator evaluator(transformer.specification(), {});
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { evaluator.evaluate(transformer, random_tokens(1)); },
      "1 tokens");
}

}  // namespace
}  // namespace heed
