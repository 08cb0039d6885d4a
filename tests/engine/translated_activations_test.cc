#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "heed/explain.h"
#include "heed/stacks.h"
#include "heed/translate.h"

namespace heed {
namespace {

using ::testing::ElementsAre;

const Translator& built_in() {
  static const Translator translator = Translator::load("translator");
  return translator;
}

struct ToyTexts {
  std::vector<std::int32_t> source = built_in().encode("A dog runs.");
  std::vector<std::int32_t> target = decoder_tokens(built_in(), "Ein Hund rennt.");

  TokenBatch pair() const { return {.tokens = target, .sources = source}; }
  std::int64_t sources() const { return std::ssize(source); }
  std::int64_t targets() const { return std::ssize(target); }
};

TEST(PairActivations, HaveTheRowsOfTheirTexts) {
  const ToyTexts texts;
  const Activations found = record(built_in(), texts.pair());
  EXPECT_EQ(found.tokens(), texts.target);
  EXPECT_EQ(found.source_tokens(), texts.source);
  EXPECT_EQ(found.shape("encoder.0.hook_resid_pre")[1], texts.sources());
  EXPECT_EQ(found.shape("decoder.0.hook_resid_pre")[1], texts.targets());
  EXPECT_EQ(found.shape("decoder.0.cross_attn.hook_k")[1], texts.sources());
  const auto plane = found.shape("decoder.0.cross_attn.hook_pattern");
  EXPECT_THAT(std::vector(plane.begin() + 2, plane.end()),
              ElementsAre(texts.targets(), texts.sources()));
  for (const char* const name : {"encoder.0.attn.hook_pattern", "decoder.0.attn.hook_attn_scores",
                                 "decoder.0.cross_attn.hook_pattern"}) {
    ASSERT_TRUE(found.is_lazy_attention(name)) << name;
    const std::vector<std::int64_t> shape = found.shape(name);
    const SharedView whole = found.at(name);
    const Array tile = found.attention(
        name, {.heads = {0}, .query_begin = 1, .query_end = 3, .key_begin = 2, .key_end = 4});
    for (std::int64_t t = 0; t < 2; ++t) {
      for (std::int64_t s = 0; s < 2; ++s) {
        EXPECT_EQ(tile[static_cast<std::size_t>(2 * t + s)], whole.data[(1 + t) * shape[3] + 2 + s])
            << name;
      }
    }
  }
  EXPECT_EQ(found.logits(), run(built_in(), texts.pair()));
}

TEST(PairActivations, AreNoStreamOfOneModel) {
  const ToyTexts texts;
  const Activations found = record(built_in(), texts.pair());
  testing::expect_error(
      ErrorCode::unsupported, [&] { head_results(found, {}); }, "an encoder-decoder has two");
}

TEST(PairHooks, ThatChangeNothingChangeNoBit) {
  const ToyTexts texts;
  const Array logits = run(built_in(), texts.pair());
  for (const std::string& name : point_names(built_in())) {
    if (name == "unembed.hook_out") continue;
    int calls = 0;
    const auto count = [&](const HookedPoint& point, Array&) {
      EXPECT_EQ(point.name, name);
      ++calls;
    };
    EXPECT_EQ(run(built_in(), texts.pair(), {.hooks = {{name, count}}}), logits) << name;
    EXPECT_EQ(calls, 1) << name;
  }
}

TEST(PairHooks, LossesAreOfTheTokensThatFollowAndTheEnd) {
  const ToyTexts texts;
  const std::vector<std::int32_t> next = tokens_after(built_in(), texts.target);
  EXPECT_EQ(std::ssize(next), texts.targets());
  EXPECT_TRUE(std::equal(texts.target.begin() + 1, texts.target.end(), next.begin()));
  const Array losses = next_token_losses(built_in(), texts.pair());
  const Array same = losses_from_logits(run(built_in(), texts.pair()), next);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], same[i], 1e-4F);
}

TEST(PairHooks, SeeEveryStepOfAGreedyTranslation) {
  const ToyTexts texts;
  std::vector<std::int64_t> positions;
  const auto plain = translate_greedily(built_in(), texts.source);
  const auto hooked = translate_greedily(
      built_in(), texts.source, 0,
      {.hooks = {{"decoder.resid_pre0", [&](const HookedPoint& point, Array& values) {
                    EXPECT_EQ(values.shape()[1], 1);
                    positions.push_back(point.first_position);
                  }}}});
  EXPECT_EQ(hooked.tokens, plain.tokens);
  EXPECT_EQ(positions.size(), plain.tokens.size());
  EXPECT_TRUE(std::ranges::is_sorted(positions));
  const auto found = built_in().translate("A dog runs.", {.beams = 1});
  EXPECT_EQ(found.front().tokens, plain.tokens);
}

// A batch of two pairs, and what each of them is alone.
TEST(PairActivations, OfPairsOfDifferentLengths) {
  const ToyTexts texts;
  const std::vector<std::int32_t> source = built_in().encode("The old man sleeps.");
  const std::vector<std::int32_t> target = decoder_tokens(built_in(), "Der Mann");
  std::vector<std::int32_t> sources = source, targets = target;
  sources.insert(sources.end(), texts.source.begin(), texts.source.end());
  targets.insert(targets.end(), texts.target.begin(), texts.target.end());
  const std::int64_t source_lengths[] = {std::ssize(source), texts.sources()};
  const std::int64_t lengths[] = {std::ssize(target), texts.targets()};
  const TokenBatch batch{.tokens = targets,
                         .sequences = 2,
                         .lengths = lengths,
                         .sources = sources,
                         .source_lengths = source_lengths};
  const Activations found = record(built_in(), batch);
  EXPECT_THAT(found.source_lengths(), ElementsAre(std::ssize(source), texts.sources()));
  const Array losses = next_token_losses(built_in(), batch);
  const Array alone = next_token_losses(built_in(), texts.pair());
  const std::int64_t longest = std::max(lengths[0], lengths[1]);
  ASSERT_EQ(losses.shape(), (std::vector<std::int64_t>{2, longest}));
  for (std::int64_t t = 0; t < texts.targets(); ++t) {
    EXPECT_NEAR(losses[static_cast<std::size_t>(longest + t)], alone[static_cast<std::size_t>(t)],
                1e-4);
  }
  const std::int64_t wrong[] = {1, 1};
  testing::expect_error(
      ErrorCode::invalid_argument,
      [&] {
        run(built_in(), {.tokens = targets,
                         .sequences = 2,
                         .lengths = lengths,
                         .sources = sources,
                         .source_lengths = wrong});
      },
      "2 sequences of the lengths 1, 1");
}

TEST(PairExplanations, AreThoseOfTheTextsThatAModelReads) {
  const ToyTexts read;
  const Texts texts{.source = read.source, .target = read.target};
  const auto lens = logit_lens(built_in(), texts, 1);
  ASSERT_EQ(std::ssize(lens.back()), read.targets());
  const Array logits = run(built_in(), read.pair());
  const std::int64_t words = logits.shape()[2];
  const auto last = logits.end() - words;
  EXPECT_EQ(lens.back().back().tokens.front(), std::max_element(last, logits.end()) - last);
  EXPECT_GT(heads(built_in(), texts, "cross").front().entropy, 0);
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { heads(built_in(), texts, "other"); },
      "expected encoder, decoder or cross");
  testing::expect_error(
      ErrorCode::unsupported, [&] { heads(built_in(), {.target = read.target}); },
      "is a translator");
}

}  // namespace
}  // namespace heed
