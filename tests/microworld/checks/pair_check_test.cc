#include "microworld/checks/pair_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "microscope/toy_pairs.h"
#include "microworld/bilingual/bilingual.h"
#include "tokenizer/train_byte_pair.h"

namespace heed {
namespace {

namespace bilingual = microworld::bilingual;

constexpr std::uint64_t seed = 6;

TranslationTokenizers pair_tokenizers() {
  std::string english, german;
  const bilingual::Bilingual world(2);
  for (std::int64_t i = 0; i < 150; ++i) {
    english += world.pair(i).english.text + "\n";
    german += world.pair(i).german.text + "\n";
  }
  const std::string_view texts[] = {english, german};
  const std::shared_ptr<const Tokenizer> both =
      learn_joint_vocabulary(std::span<const std::string_view>(texts), {.vocabulary_size = 400});
  return {both, both};
}

class PairCheckTest : public ::testing::Test {
 protected:
  static Architecture architecture(const Tokenizer& tokenizer) {
    Architecture made = testing::toy_pair_architecture({});
    for (StackSpecification& stack : made.stacks) {
      stack.vocabulary_size = tokenizer.vocabulary_size();
      stack.context = 160;
    }
    return made;
  }

  PairCheck check(const Transformer& model, PairCheckOptions options) const {
    options.seed = seed;
    return check_pairs(model, tokenizers_, options);
  }
  MarkedPair pair(std::int64_t index) const {
    return mark_pair(bilingual::Bilingual(seed).pair(index), model_.architecture(), tokenizers_);
  }

  TranslationTokenizers tokenizers_ = pair_tokenizers();
  Transformer model_ = testing::toy_translator(architecture(*tokenizers_.source));
};

TEST_F(PairCheckTest, WordsStandOnTheirTokens) {
  for (std::int64_t i = 0; i < 40; ++i) {
    const bilingual::Pair told = bilingual::Bilingual(seed).pair(i);
    const MarkedPair marked = pair(i);
    const auto text_at = [&](const std::vector<std::int32_t>& tokens, const TextWord& word) {
      std::string text;
      for (std::int64_t t = word.begin; t < word.end; ++t) {
        text += tokenizers_.source->token_bytes(tokens[static_cast<std::size_t>(t)]);
      }
      return text.starts_with(' ') ? text.substr(1) : text;
    };
    ASSERT_EQ(marked.target_words.size(), told.german.words.size());
    for (const TextWord& word : marked.source_words) {
      EXPECT_EQ(text_at(marked.tokens.source, word), word.text);
    }
    for (std::size_t w = 0; w < marked.target_words.size(); ++w) {
      const TextWord& word = marked.target_words[w];
      EXPECT_EQ(text_at(marked.tokens.target, word), word.text);
      EXPECT_EQ(word.text, told.german.words[w].span.in(told.german.text));
      EXPECT_EQ(marked.is_content[w], told.german.words[w].word.content);
    }
    EXPECT_EQ(marked.tokens.source.back(), 2);
    EXPECT_EQ(marked.tokens.target.front(), 1);
    EXPECT_EQ(marked.next.back(), 2);
    EXPECT_TRUE(std::equal(marked.next.begin(), marked.next.end() - 1,
                           marked.tokens.target.begin() + 1, marked.tokens.target.end()));
    EXPECT_EQ(marked.truth.sure.size(), told.sure.size());
  }
}

TEST_F(PairCheckTest, LossIsThatOfThePairsOneByOne) {
  const PairCheck found = check(model_, {.pairs = 5, .cut_pairs = 0, .batch_tokens = 30});
  double loss = 0, log_probability = 0;
  for (std::int64_t i = 0; i < 5; ++i) {
    const MarkedPair marked = pair(i);
    const RecordedPass pass(model_, marked.tokens);
    for (std::int64_t t = 0; t < pass.positions(); ++t) {
      const auto next = static_cast<std::size_t>(marked.next[static_cast<std::size_t>(t)]);
      loss -= std::log(pass.next_probabilities(t)[next]);
    }
    log_probability += marked.log_probability;
  }
  EXPECT_NEAR(found.loss_nats_per_pair, loss / 5, 1e-5 * loss);
  EXPECT_NEAR(found.entropy_nats_per_pair, -log_probability / 5, 1e-9);
  EXPECT_TRUE(std::isnan(found.all_words.right));
}

TEST_F(PairCheckTest, AlignmentsAreSumsOverPairs) {
  const PairCheck found = check(model_, {.pairs = 3, .cut_pairs = 0});
  ASSERT_EQ(found.heads.size(), 8U);
  for (std::size_t h = 0; h + 1 < found.heads.size(); ++h) {
    EXPECT_LE(found.heads[h].counts.error_rate(), found.heads[h + 1].counts.error_rate());
  }
  const HeadAlignment& best = found.heads.front();
  scoring::AlignmentCounts counts;
  for (std::int64_t i = 0; i < 3; ++i) {
    const MarkedPair marked = pair(i);
    const RecordedPass pass(model_, marked.tokens);
    RecordedAttention attention(pass);
    for (const HeadAlignment& head :
         head_alignments(pass, attention, marked.words(), marked.truth, WordRow::written)) {
      if (head.layer == best.layer && head.head == best.head) counts += head.counts;
    }
  }
  EXPECT_EQ(best.counts.found, counts.found);
  EXPECT_EQ(best.counts.found_sure, counts.found_sure);
  // A random head is no better than the diagonal, which many words of a pair are on.
  EXPECT_LT(found.diagonal_error_rate, best.counts.error_rate());
  EXPECT_GT(found.diagonal_error_rate, 0.1);
}

TEST_F(PairCheckTest, CutsAreThoseOfTheTruthsWords) {
  const PairCheck found = check(model_, {.pairs = 3, .cut_pairs = 2});
  EXPECT_EQ(found.cut_pairs, 2);
  EXPECT_GT(found.all_words.words, found.content_words.words);
  EXPECT_GT(found.content_words.words, 4);
  EXPECT_NE(found.all_words.probability, found.all_words.probability_without_true);
  EXPECT_NE(found.all_words.probability, found.all_words.probability_without_others);
}

// Zero weights attend evenly to values that are zero: nothing that is cut can change anything, and
// every token is as likely as every other.
TEST_F(PairCheckTest, FindsNothingWhereWeightsAreZero) {
  const Transformer zero(model_.architecture());
  const PairCheck found = check(zero, {.pairs = 4, .cut_pairs = 4});
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < 4; ++i) tokens += std::ssize(pair(i).next);
  const double nats = std::log(static_cast<double>(tokenizers_.target->vocabulary_size()));
  EXPECT_NEAR(found.loss_nats_per_pair, nats * static_cast<double>(tokens) / 4, 1e-3);
  EXPECT_EQ(found.all_words.probability, found.all_words.probability_without_true);
  EXPECT_EQ(found.all_words.probability, found.all_words.probability_without_others);
  EXPECT_EQ(found.grammatical, 0);
  EXPECT_EQ(found.exact, 0);
}

TEST_F(PairCheckTest, DoesNotDependOnTheBatchAndStops) {
  const PairCheck one = check(model_, {.pairs = 6, .cut_pairs = 1, .batch_tokens = 1});
  const PairCheck many = check(model_, {.pairs = 6, .cut_pairs = 1});
  EXPECT_NEAR(one.loss_nats_per_pair, many.loss_nats_per_pair, 1e-5 * one.loss_nats_per_pair);
  const std::atomic<bool> stop{true};
  testing::expect_error(
      ErrorCode::interrupted, [&] { check(model_, {.pairs = 2, .stop = &stop}); }, "interrupted");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { check(model_, {.pairs = 0}); }, "at least one");
}

}  // namespace
}  // namespace heed
