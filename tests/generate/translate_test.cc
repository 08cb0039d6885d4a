#include "generate/translate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "base/utf8.h"
#include "support/small_translator.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::small_joint_vocabulary;
using testing::small_translator;

TEST(Translate, SourcesEndAsTheirTokenizerEndsTexts) {
  const TranslationTokenizers tokenizers = small_joint_vocabulary();
  const Transformer model = small_translator(tokenizers);
  const auto tokens = encode_source(model.architecture(), *tokenizers.source, "the dog", "line 1");
  EXPECT_EQ(tokens.back(), 2);
  EXPECT_EQ(tokenizers.source->decode(tokens, {.special_tokens = false}), "the dog");
}

TEST(Translate, NamesTheTextThatItCannotRead) {
  const TranslationTokenizers tokenizers = small_joint_vocabulary();
  const Transformer model = small_translator(tokenizers);
  const auto refused = [&](std::string_view text, std::string_view expected) {
    expect_error(
        ErrorCode::invalid_argument,
        [&] { encode_source(model.architecture(), *tokenizers.source, text, "line 3"); }, expected);
  };
  refused("", "line 3 is empty");
  refused(" \t", "line 3 is empty");
  refused("a \xFF b", "line 3 is not UTF-8");
  refused(std::string(200, 'x'), "more than the 32 that the encoder reads");
  Architecture small = model.architecture();
  for (StackSpecification& stack : small.stacks) stack.vocabulary_size = 100;
  expect_error(
      ErrorCode::invalid_argument,
      [&] { encode_source(small, *tokenizers.source, "the dog sees the cat", "the text"); },
      "the text has the token", "the model's vocabulary ends with 99");
}

// What is read back has no end, no other special tokens, and is UTF-8.
TEST(Translate, TextsHaveOnlyWhatTheTokenizerKnows) {
  const TranslationTokenizers tokenizers = small_joint_vocabulary();
  Transformer model = small_translator(tokenizers);
  // The likeliest tokens would be those that pad the vocabulary.
  const View<float> bias = model.parameters().tensor(
      {.role = Role::unembedding, .part = Part::bias, .site = StackSite::decoder});
  const std::int32_t known = tokenizers.target->vocabulary_size();
  for (std::int64_t v = known; v < bias.extent(0); ++v) bias(v) = 30;
  SourceTokens sources;
  sources.add(encode_source(model.architecture(), *tokenizers.source, "the dog", "a"));
  sources.add(encode_source(model.architecture(), *tokenizers.source, "a bird sees", "b"));
  const auto found =
      translate_tokens(model, *tokenizers.target, sources, {.beams = 3, .n_best = 3});
  ASSERT_EQ(found.size(), 2U);
  for (const auto& hypotheses : found) {
    ASSERT_EQ(hypotheses.size(), 3U);
    for (const TokenHypothesis& hypothesis : hypotheses) {
      EXPECT_LT(std::ranges::max(hypothesis.tokens), known);
      const std::string text = decode_target(*tokenizers.target, hypothesis.tokens);
      EXPECT_TRUE(is_valid_utf8(text));
      EXPECT_EQ(text.find("</s>"), std::string::npos);
    }
  }
}

// A row for each token that is written; the last layer's is what its keys and queries say.
TEST(Translate, CrossAttentionIsThatOfTheModel) {
  const TranslationTokenizers tokenizers = small_joint_vocabulary();
  const Transformer model = small_translator(tokenizers);
  const std::vector<std::int32_t> source{7, 9, 12, 2}, target{30, 8, 2};
  const Tensor<float> patterns = cross_attention(model, source, target);
  ASSERT_EQ(patterns.shape(), (Shape{1, 2, 3, 4}));
  std::vector<float> first;
  for (std::int64_t row = 0; row < 6; ++row) {
    double sum = 0;
    for (std::int64_t s = 0; s < 4; ++s) sum += patterns[row * 4 + s];
    EXPECT_NEAR(sum, 1.0, 1e-5);
  }
  // The first row is before anything is written: of any target.
  const Tensor<float> other = cross_attention(model, source, std::vector<std::int32_t>{5});
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t s = 0; s < 4; ++s) {
      EXPECT_NEAR(other.view()(0, h, 0, s), patterns.view()(0, h, 0, s), 1e-6);
    }
  }
  EXPECT_GT(std::abs(patterns.view()(0, 0, 1, 0) - patterns.view()(0, 0, 0, 0)), 1e-3);
  const std::vector<std::int32_t> none, beyond{4, 99999};
  expect_error(
      ErrorCode::invalid_argument, [&] { cross_attention(model, none, target); },
      "the source has no tokens");
  expect_error(
      ErrorCode::invalid_argument, [&] { cross_attention(model, source, beyond); },
      "the target has the token 99999");
}

}  // namespace
}  // namespace heed
