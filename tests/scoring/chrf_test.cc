#include "scoring/chrf.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace heed::scoring {
namespace {

using Sentences = std::vector<std::string>;

double chrf_of(const std::string& hypothesis, const Sentences& references,
               const ChrfOptions& options = {}) {
  std::vector<Sentences> sets;
  for (const std::string& reference : references) sets.push_back({reference});
  return corpus_chrf(Sentences{hypothesis}, sets, options).score;
}

// Orders 1 and 2 of "abcd" against "abc": precision 3/4 and 2/3, recall 1.
TEST(Chrf, WeighsRecallByBeta) {
  const ChrfOptions options{.character_order = 2};
  const double precision = (3.0 / 4 + 2.0 / 3) / 2;
  EXPECT_NEAR(chrf_of("abcd", {"abc"}, options), 100 * 5 * precision / (4 * precision + 1), 1e-10);
}

TEST(Chrf, IgnoresSpacesInCharacterNgrams) {
  EXPECT_NEAR(chrf_of("ab cd ef", {"abcdef"}), 100, 1e-10);
  EXPECT_LT(chrf_of("ab cd ef", {"abcdef"}, {.word_order = 1}), 100);
}

TEST(Chrf, TakesPunctuationOffWordsForWordNgrams) {
  const ChrfOptions words{.character_order = 1, .word_order = 1};
  // Characters 2 of 3; words "so" of "so" and "!".
  const double precision = (2.0 / 3 + 1.0 / 2) / 2;
  EXPECT_NEAR(chrf_of("so!", {"so"}, words), 100 * 5 * precision / (4 * precision + 1), 1e-10);
}

// Characters 2 of 3; words "so" of "so" and the mark before it.
TEST(Chrf, TakesALeadingMarkOffToo) {
  const ChrfOptions words{.character_order = 1, .word_order = 1};
  EXPECT_NEAR(chrf_of("$so", {"#so"}, words), 100 * (2.0 / 3 + 1.0 / 2) / 2, 1e-10);
}

TEST(Chrf, ChoosesTheBestReference) {
  EXPECT_NEAR(chrf_of("abc", {"xyz", "abc", "ab"}), 100, 1e-10);
}

TEST(Chrf, IsZeroWithoutAMatchAndForAnEmptyTranslation) {
  EXPECT_EQ(chrf_of("xyz", {"abc"}), 0);
  EXPECT_EQ(chrf_of("", {"abc"}), 0);
  EXPECT_EQ(chrf_of("abc", {""}), 0);
  EXPECT_EQ(chrf_of("", {""}), 0);
}

TEST(Chrf, NamesItselfByItsOptions) {
  EXPECT_EQ(Chrf().name(), "chrF2");
  EXPECT_EQ(Chrf({.word_order = 2}).name(), "chrF2++");
  const std::string signature = Chrf({.word_order = 2, .lowercase = true}).signature({});
  EXPECT_TRUE(signature.starts_with("nrefs:1|case:lc|eff:yes|nc:6|nw:2|space:no|version:heed-"))
      << signature;
}

TEST(Chrf, RefusesOptionsOutOfRange) {
  testing::expect_error(
      ErrorCode::invalid_argument, [] { Chrf({.character_order = 0}); },
      "character order must be from 1 to 64, not 0");
  testing::expect_error(
      ErrorCode::invalid_argument, [] { Chrf({.word_order = -1}); },
      "word order must be from 0 to 64, not -1");
  testing::expect_error(
      ErrorCode::invalid_argument, [] { Chrf({.beta = 65}); }, "beta must be from 1 to 64, not 65");
}

}  // namespace
}  // namespace heed::scoring
