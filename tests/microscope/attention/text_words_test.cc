#include "microscope/attention/text_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace heed {
namespace {

using ::testing::HasSubstr;

std::vector<TextWord> words(std::vector<std::string> tokens) { return words_of(tokens); }

TEST(TextWords, GroupsTokensBetweenSpaces) {
  const auto found = words({"A", " fl", "uffy", " mole", ".", " Moles", "!\n", "Mole"});
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[1].text, "fluffy");
  EXPECT_EQ(found[1].begin, 1);
  EXPECT_EQ(found[1].last(), 2);
  EXPECT_EQ(found[2].text, "mole");
  EXPECT_EQ(found[2].last(), 3);  // without the full stop
  EXPECT_EQ(found[4].text, "Mole");
  EXPECT_EQ(found[4].begin, 7);
}

TEST(TextWords, KeepsLonelyPunctuationAndInnerApostrophes) {
  const auto found = words({"it", "'s", " -", " \"done\""});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].text, "it's");
  EXPECT_EQ(found[1].text, "-");
  EXPECT_EQ(found[2].text, "done");
}

TEST(TextWords, FindsTheLastOrTheOneAskedFor) {
  const auto found = words({"mole", " and", " Mole", " and", " mole"});
  EXPECT_EQ(find_word(found, "mole").begin, 4);
  EXPECT_EQ(find_word(found, "mole", 1).begin, 0);
  EXPECT_EQ(find_word(found, "Mole").begin, 2);
  EXPECT_EQ(find_word(found, "AND", 2).begin, 3);
}

TEST(TextWords, NamesTheWordsThereAre) {
  const auto found = words({"a", " mole"});
  try {
    find_word(found, "bank");
    FAIL() << "found a word that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("a, mole"));
  }
  EXPECT_THROW(find_word(found, "mole", 2), Error);
}

}  // namespace
}  // namespace heed
