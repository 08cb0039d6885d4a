#include "generate/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "generate/random_transformer.h"
#include "support/gpt2_names.h"
#include "tokenizer/byte_pair_tokenizer.h"

namespace heed {
namespace {

using ::testing::ElementsAreArray;
using testing::expect_error;
using testing::full_logits;
using testing::random_tokens;
using testing::random_transformer;
using testing::small_config;

// Token i is byte i; 256 ends a text.
BytePairTokenizer byte_tokenizer() {
  BytePairDefinition definition;
  for (int byte = 0; byte < 256; ++byte) definition.tokens.emplace_back(1, static_cast<char>(byte));
  definition.tokens.emplace_back(end_of_text_name);
  definition.added = {{.id = 256, .content = std::string(end_of_text_name)}};
  return BytePairTokenizer(std::move(definition), "test");
}

// Predicts t[i + 1] after token t[i] with certainty: position embeddings are zero, token embeddings
// are one-hot, and the unembedding maps each token to its successor.
Transformer reciting_transformer(const std::vector<std::int32_t>& successor, std::int64_t context) {
  const auto size = static_cast<std::int64_t>(successor.size());
  StackSpecification config = make_gpt_config(1, 1, size, context, size);
  config.tied_unembedding = false;
  Transformer transformer({.stacks = {config}});
  for (std::int64_t token = 0; token < size; ++token) {
    transformer.parameters().tensor(testing::gpt2_parameter("wte.weight"))(token, token) = 1.0F;
    transformer.parameters().tensor(testing::gpt2_parameter("lm_head.weight"))(
        successor[static_cast<std::size_t>(token)], token) = 1.0F;
    transformer.parameters().tensor(testing::gpt2_parameter("ln_f.weight"))(token) = 1.0F;
  }
  return transformer;
}

// Recites the bytes of `text` in a circle; every byte of it is another.
Transformer reciting_transformer(const std::string& text, std::int64_t vocabulary_size) {
  std::vector<std::int32_t> successor(static_cast<std::size_t>(vocabulary_size), 0);
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i % text.size()]); };
  for (std::size_t i = 0; i < text.size(); ++i) successor[at(i)] = at(i + 1);
  return reciting_transformer(successor, 64);
}

std::vector<std::int32_t> ids(const std::string& text) {
  std::vector<std::int32_t> result;
  for (const char byte : text) result.push_back(static_cast<std::uint8_t>(byte));
  return result;
}

GenerateOptions greedy(std::int64_t max_new_tokens) {
  return {.max_new_tokens = max_new_tokens, .sampling = {.temperature = 0}};
}

TEST(Generate, GreedyTextIsTheSameWithAndWithoutACache) {
  const Transformer transformer = random_transformer(small_config());
  const auto prompt = random_tokens(4, 61, 1);
  const GenerationResult result = generate(transformer, nullptr, prompt, greedy(20));
  auto tokens = prompt;
  while (tokens.size() < 24) {
    const Tensor<float> logits = full_logits(transformer, tokens);
    const auto last = logits.view()[static_cast<std::int64_t>(tokens.size()) - 1].span();
    tokens.push_back(static_cast<std::int32_t>(std::ranges::max_element(last) - last.begin()));
  }
  EXPECT_THAT(result.tokens, ElementsAreArray(tokens.begin() + 4, tokens.end()));
  EXPECT_EQ(result.finish_reason, FinishReason::length);
  EXPECT_EQ(result.timings.prompt_tokens, 4);
  EXPECT_EQ(result.timings.generated_tokens, 20);
  EXPECT_EQ(result.text, "");
}

TEST(Generate, IsAFunctionOfItsSeed) {
  const Transformer transformer = random_transformer(small_config());
  const auto with_seed = [&](std::uint64_t seed) {
    return generate(transformer, nullptr, std::vector<std::int32_t>{1},
                    {.max_new_tokens = 20, .sampling = {.temperature = 2.0, .seed = seed}})
        .tokens;
  };
  EXPECT_EQ(with_seed(1), with_seed(1));
  EXPECT_NE(with_seed(1), with_seed(2));
}

TEST(Generate, StartsAnewInASessionThatHasReadBefore) {
  const Transformer transformer = random_transformer(small_config());
  Session session(transformer);
  const auto prompt = random_tokens(5, 61, 2);
  const auto first = generate(session, nullptr, prompt, greedy(10));
  EXPECT_EQ(generate(session, nullptr, prompt, greedy(10)).tokens, first.tokens);
  EXPECT_EQ(generate(transformer, nullptr, prompt, greedy(10)).tokens, first.tokens);
}

TEST(Generate, StreamsWholeCharacters) {
  const auto tokenizer = byte_tokenizer();
  const std::string text = "aé😀";
  const Transformer transformer = reciting_transformer(text, 257);
  std::vector<std::string> pieces;
  std::vector<std::int32_t> tokens;
  const auto result =
      generate(transformer, &tokenizer, ids("a"), greedy(9), [&](const GenerationEvent& event) {
        if (event.token) {
          tokens.push_back(*event.token);
          EXPECT_EQ(event.logits.size(), 257U);
        }
        if (!event.text.empty()) pieces.emplace_back(event.text);
      });
  EXPECT_THAT(pieces, ::testing::ElementsAre("é", "😀", "a", "é"));
  EXPECT_EQ(result.text, "é😀aé");
  EXPECT_EQ(result.tokens, tokens);
}

TEST(Generate, ReleasesAnUnfinishedCharacterAtTheEnd) {
  const auto tokenizer = byte_tokenizer();
  const Transformer transformer = reciting_transformer("aé", 257);
  EXPECT_EQ(generate(transformer, &tokenizer, ids("a"), greedy(1)).text, "\uFFFD");
}

TEST(Generate, StopsAtAStopStringThatSpansTokens) {
  const auto tokenizer = byte_tokenizer();
  const Transformer transformer = reciting_transformer("abcdefgh", 257);
  GenerateOptions options = greedy(30);
  options.stop_strings = {"fgh", "efx"};
  std::string streamed;
  const auto result =
      generate(transformer, &tokenizer, ids("a"), options, [&](const GenerationEvent& event) {
        streamed += event.text;
        EXPECT_EQ(streamed.find('f'), std::string::npos);
      });
  EXPECT_EQ(result.finish_reason, FinishReason::stop_string);
  EXPECT_EQ(result.text, "bcde");
  EXPECT_EQ(streamed, result.text);
  EXPECT_EQ(result.tokens, ids("bcdefgh"));
}

TEST(Generate, ReleasesTheBeginningOfAStopStringWhenTheLengthIsReached) {
  const auto tokenizer = byte_tokenizer();
  const Transformer transformer = reciting_transformer("abcdefgh", 257);
  GenerateOptions options = greedy(4);
  options.stop_strings = {"defx"};
  std::vector<std::optional<std::int32_t>> tokens;
  const auto result = generate(transformer, &tokenizer, ids("a"), options,
                               [&](const auto& event) { tokens.push_back(event.token); });
  EXPECT_EQ(result.text, "bcde");
  EXPECT_EQ(tokens.size(), 5U);
  EXPECT_EQ(tokens.back(), std::nullopt);
}

TEST(Generate, EndsWithTheText) {
  const auto tokenizer = byte_tokenizer();
  std::vector<std::int32_t> successor(257, 256);
  successor['a'] = 'b';
  const Transformer transformer = reciting_transformer(successor, 64);
  auto result = generate(transformer, &tokenizer, ids("a"), greedy(10));
  EXPECT_EQ(result.finish_reason, FinishReason::stop_token);
  EXPECT_EQ(result.text, "b");
  EXPECT_EQ(result.tokens, (std::vector<std::int32_t>{'b', 256}));
  GenerateOptions options = greedy(10);
  options.ignore_end_of_text = true;
  result = generate(transformer, &tokenizer, ids("a"), options);
  EXPECT_EQ(result.finish_reason, FinishReason::length);
  EXPECT_THAT(result.tokens, ::testing::Not(::testing::Contains(256)));
}

TEST(Generate, EndsWithTheModelsOwnEndOfText) {
  StackSpecification config = small_config();
  const auto prompt = random_tokens(4, 61, 1);
  const auto tokens = generate(random_transformer(config), nullptr, prompt, greedy(20)).tokens;
  config.end_of_text = tokens[0];
  EXPECT_EQ(generate(random_transformer(config), nullptr, prompt, greedy(20)).tokens,
            (std::vector<std::int32_t>{tokens[0]}));
}

TEST(Generate, SamplesOnlyTokensOfTheTokenizer) {
  const auto tokenizer = byte_tokenizer();
  const Transformer transformer = reciting_transformer(std::vector<std::int32_t>(300, 299), 16);
  for (const std::int32_t token : generate(transformer, &tokenizer, ids("a"), greedy(10)).tokens) {
    EXPECT_LT(token, 257);
  }
}

TEST(Generate, EndsWhenTheContextIsFull) {
  const Transformer transformer = random_transformer(small_config());
  const auto prompt = random_tokens(20, 61, 3);
  const auto result = generate(transformer, nullptr, prompt, greedy(100));
  EXPECT_EQ(result.finish_reason, FinishReason::context_full);
  EXPECT_EQ(result.tokens.size(), 5U);  // the last is drawn from the last position and not read
  expect_error(
      ErrorCode::invalid_argument,
      [&] { generate(transformer, nullptr, random_tokens(25, 61, 3), greedy(1)); },
      "25 tokens after 0 in the cache");
}

TEST(Generate, GoesOnBeyondTheContextInAShiftingWindow) {
  const Transformer transformer = random_transformer(small_config());
  auto tokens = random_tokens(20, 61, 3);
  GenerateOptions options = greedy(60);
  options.overflow = ContextOverflow::shift_window;
  const auto result = generate(transformer, nullptr, tokens, options);
  EXPECT_EQ(result.finish_reason, FinishReason::length);
  ASSERT_EQ(result.tokens.size(), 60U);
  // The same by hand: a window that keeps its last half when it is full.
  std::vector<std::int32_t> window = tokens;
  std::int64_t shifts = 0;
  for (const std::int32_t drawn : result.tokens) {
    const Tensor<float> logits = full_logits(transformer, window);
    const auto last = logits.view()[static_cast<std::int64_t>(window.size()) - 1].span();
    EXPECT_EQ(drawn, std::ranges::max_element(last) - last.begin());
    if (window.size() == 24) {
      window.erase(window.begin(), window.end() - 11);
      ++shifts;
    }
    window.push_back(drawn);
  }
  EXPECT_EQ(result.shifts, shifts);
}

TEST(Generate, ShiftsAWindowOverAQuantisedCache) {
  const Transformer transformer = random_transformer(small_config());
  const auto prompt = random_tokens(20, 61, 3);
  GenerateOptions options = greedy(30);
  options.overflow = ContextOverflow::shift_window;
  for (const CacheType type : {CacheType::bf16, CacheType::int8}) {
    options.cache_type = type;
    const auto result = generate(transformer, nullptr, prompt, options);
    EXPECT_GT(result.shifts, 0);
    // The same by hand.
    Session session(transformer, 24, type);
    auto history = prompt;
    auto logits = session.feed(prompt);
    for (const std::int32_t drawn : result.tokens) {
      ASSERT_EQ(drawn, std::ranges::max_element(logits) - logits.begin());
      history.push_back(drawn);
      const bool full = session.room() == 0;
      if (full) session.reset();
      logits = session.feed(std::span(history).last(full ? 12 : 1));
    }
  }
}

TEST(Generate, ReadsTheEndOfAPromptTooLongForAShiftingWindow) {
  const Transformer transformer = random_transformer(small_config());
  const auto prompt = random_tokens(40, 61, 4);
  GenerateOptions options = greedy(1);
  options.overflow = ContextOverflow::shift_window;
  const auto result = generate(transformer, nullptr, prompt, options);
  EXPECT_EQ(result.timings.prompt_tokens, 24);
  EXPECT_EQ(result.tokens,
            generate(transformer, nullptr, std::span(prompt).last(24), options).tokens);
}

TEST(Generate, StopsOnRequest) {
  const Transformer transformer = random_transformer(small_config());
  std::atomic<bool> stop = false;
  GenerateOptions options = greedy(20);
  options.stop = &stop;
  const auto result = generate(transformer, nullptr, random_tokens(2, 61, 5), options,
                               [&](const GenerationEvent&) { stop = true; });
  EXPECT_EQ(result.finish_reason, FinishReason::interrupted);
  EXPECT_EQ(result.tokens.size(), 1U);
}

TEST(Generate, RefusesInvalidOptions) {
  const Transformer transformer = random_transformer(small_config());
  const std::vector<std::int32_t> prompt{1};
  const auto refuse = [&](std::span<const std::int32_t> tokens, const GenerateOptions& options,
                          const char* part) {
    expect_error(
        ErrorCode::invalid_argument, [&] { generate(transformer, nullptr, tokens, options); },
        part);
  };
  refuse({}, greedy(1), "at least one token");
  refuse(std::vector<std::int32_t>{61}, greedy(1), "token id 61 at position 0");
  refuse(prompt, greedy(-1), "0 or more, not -1");
  refuse(prompt, {.stop_strings = {"x"}}, "stop strings need a tokenizer");
  refuse(prompt, {.sampling = {.top_p = 2.0}}, "top_p");
  EXPECT_TRUE(generate(transformer, nullptr, prompt, greedy(0)).tokens.empty());
}

}  // namespace
}  // namespace heed
