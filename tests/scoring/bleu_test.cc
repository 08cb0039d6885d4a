#include "scoring/bleu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "heed/version.h"
#include "scoring/characters.h"

namespace heed::scoring {
namespace {

using Sentences = std::vector<std::string>;

// The example of the paper: a word counts as often as a reference has it.
TEST(Bleu, ClipsCountsByTheReferences) {
  const Sentences references{"The cat is on the mat", "There is a cat on the mat"};
  const BleuStatistics statistics =
      bleu_statistics("the the the the the the the", references, {.lowercase = true});
  EXPECT_EQ(statistics.correct[0], 2);
  EXPECT_EQ(statistics.total[0], 7);
  EXPECT_EQ(statistics.correct[1], 0);
  EXPECT_EQ(statistics.total[1], 6);
  EXPECT_EQ(statistics.hypothesis_length, 7);
  EXPECT_EQ(statistics.reference_length, 7);  // of 6 and 7, the closest
}

TEST(Bleu, TakesTheShorterOfTwoReferencesThatAreEquallyClose) {
  const Sentences references{"a b c d e", "a b c"};
  EXPECT_EQ(bleu_statistics("a b c d", references, {}).reference_length, 3);
}

TEST(Bleu, IsTheGeometricMeanOfPrecisionsTimesTheBrevityPenalty) {
  // Precisions 5/6, 4/5, 3/4, 2/3; six words against seven.
  const Sentences hypotheses{"a b c d e x"};
  const std::vector<Sentences> references{{"a b c d e f g"}};
  const BleuScore score = corpus_bleu(hypotheses, references);
  EXPECT_NEAR(score.brevity_penalty, std::exp(1 - 7.0 / 6), 1e-12);
  EXPECT_NEAR(score.score, 100 * std::exp(1 - 7.0 / 6) * std::pow(1.0 / 3, 0.25), 1e-10);
  EXPECT_NEAR(score.length_ratio, 6.0 / 7, 1e-12);
  EXPECT_EQ(
      score.signature,
      std::string("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed-") + heed::version);
}

// Orders without a match count as 1/2, 1/4, … of one.
TEST(Bleu, SmoothsOrdersWithoutAMatch) {
  const BleuScore score =
      corpus_bleu(Sentences{"a x b y c"}, std::vector<Sentences>{{"a b c d e"}});
  EXPECT_NEAR(score.precisions[0], 60, 1e-12);
  EXPECT_NEAR(score.precisions[1], 100 * 0.5 / 4, 1e-12);
  EXPECT_NEAR(score.precisions[2], 100 * 0.25 / 3, 1e-12);
  EXPECT_NEAR(score.precisions[3], 100 * 0.125 / 2, 1e-12);
}

TEST(Bleu, OfAShortSentenceUsesTheOrdersThatItHas) {
  const Sentences references{"a b"};
  EXPECT_NEAR(sentence_bleu("a b", references).score, 100, 1e-10);
  EXPECT_EQ(corpus_bleu(Sentences{"a b"}, std::vector<Sentences>{references}).score, 0);
  EXPECT_NE(sentence_bleu("a b", references).signature.find("eff:yes"), std::string::npos);
}

TEST(Bleu, IsZeroWithoutAMatchAndForAnEmptyTranslation) {
  EXPECT_EQ(sentence_bleu("x y z", Sentences{"a b c"}).score, 0);
  const BleuScore empty = sentence_bleu("", Sentences{"a b c"});
  EXPECT_EQ(empty.score, 0);
  EXPECT_EQ(empty.brevity_penalty, 0);
  EXPECT_EQ(sentence_bleu("", Sentences{""}).score, 0);
}

TEST(Bleu, AddsSentences) {
  const Sentences hypotheses{"a b c d e", "f g h", ""};
  const std::vector<Sentences> references{{"a b c d x", "f g", "y"}};
  BleuStatistics sum;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    sum += bleu_statistics(hypotheses[i], std::span(&references[0][i], 1), {});
  }
  EXPECT_EQ(bleu_score(sum, {}).score, corpus_bleu(hypotheses, references).score);
}

TEST(Bleu, ComparesBytesThatAreNotUtf8) {
  EXPECT_NEAR(sentence_bleu("a \xff b \xc3", Sentences{"a \xff b \xc3"}).score, 100, 1e-10);
  EXPECT_LT(sentence_bleu("a \xff b \xc3", Sentences{"a \xfe b \xc3"}).score, 100);
}

TEST(Bleu, RefusesTextsThatDoNotGoTogether) {
  const Sentences two{"a", "b"};
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { corpus_bleu(two, std::vector<Sentences>{{"a"}}); },
      "1 sentences, and there are 2");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { corpus_bleu(two, std::vector<Sentences>{}); },
      "no references");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { corpus_bleu(Sentences{}, std::vector<Sentences>{{}}); },
      "no sentences");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { sentence_bleu("a", Sentences{}); }, "no references");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { bleu_tokenization_from_name("13b"); },
      "13a, none, char, intl, zh");
}

}  // namespace
}  // namespace heed::scoring
