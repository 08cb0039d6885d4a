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

// A unit is what people see as one: a character of a script without spaces, an emoji of several
// parts.
TEST(TextWords, OfOtherScriptsAreWhatPeopleRead) {
  const auto chinese = words({"I", " \xE6\xB0", "\xB4\xE7\x81", "\xAB", "!"});
  ASSERT_EQ(chinese.size(), 4U);
  EXPECT_EQ(chinese[1].text, "水");
  EXPECT_EQ(chinese[1].begin, 1);
  EXPECT_EQ(chinese[1].end, 3);
  EXPECT_EQ(chinese[2].text, "火");
  EXPECT_EQ(chinese[2].begin, 2) << "shares a token with the one before";
  EXPECT_EQ(chinese[3].text, "!");
  const auto arabic = words({"\xD8", "\xB3لا", "م عليكم"});
  ASSERT_EQ(arabic.size(), 2U);
  EXPECT_EQ(arabic[0].text, "سلام");
  EXPECT_EQ(arabic[1].text, "عليكم");
  const std::string family = "👩‍👧";
  const auto emoji = words({family.substr(0, 5), family.substr(5), " x"});
  ASSERT_EQ(emoji.size(), 2U);
  EXPECT_EQ(emoji[0].text, family);
  EXPECT_EQ(words({"\xE6"}).size(), 1U) << "a lone byte";
}

TEST(Units, CoverEveryTokenOnceInOrder) {
  const std::vector<std::string> tokens{"<end>", "\"",  "A",  " fl",  "uffy",
                                        " mole", ".\"", "\n", "Moles"};
  const auto units = units_of(tokens);
  std::int64_t covered = 0;
  for (const TextWord& unit : units) {
    EXPECT_EQ(unit.begin, covered);
    covered = unit.end;
  }
  EXPECT_EQ(covered, 9);
  EXPECT_EQ(unit_at(units, 3).text, "fluffy");
  EXPECT_EQ(unit_at(units, 4).text, "fluffy");
  EXPECT_EQ(unit_at(units, 6).text, ".\"");
  EXPECT_EQ(unit_at(units, 8).text, "Moles");
}

TEST(Units, ATokenOfTwoWordsCountsWithTheFirst) {
  const auto units = units_of(std::vector<std::string>{"of a", " mole"});
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[0].text, "of");
  EXPECT_EQ(units[1].text, "mole");
}

TEST(Units, RowsAreThoseOfTheLastTokenAndKeysAreSummed) {
  const auto units = units_of(std::vector<std::string>{"a", " fl", "uffy", " mole"});
  Tensor<float> pattern(Shape{4, 4});
  const float rows[4][4] = {{1, 0, 0, 0}, {.5, .5, 0, 0}, {.2F, .3F, .5F, 0}, {.1F, .2F, .3F, .4F}};
  for (std::int64_t t = 0; t < 4; ++t) {
    for (std::int64_t s = 0; s < 4; ++s) pattern.view()(t, s) = rows[t][s];
  }
  const Tensor<float> words = by_words(pattern, units, units, WordRow::read);
  ASSERT_EQ(words.shape(), (Shape{3, 3}));
  EXPECT_FLOAT_EQ(words.view()(1, 0), .2F);
  EXPECT_FLOAT_EQ(words.view()(1, 1), .8F);
  EXPECT_FLOAT_EQ(words.view()(2, 0), .1F);
  EXPECT_FLOAT_EQ(words.view()(2, 1), .5F);
  EXPECT_FLOAT_EQ(words.view()(2, 2), .4F);
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
