#include "tokenizer/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "base/utf8.h"

namespace heed {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  for_each_word(text, [&](std::size_t begin, std::size_t end) {
    result.emplace_back(text.substr(begin, end - begin));
  });
  return result;
}

TEST(Words, TakeOneSpaceBeforeLettersNumbersAndOthers) {
  EXPECT_THAT(words("Hello world 42 !?"), ElementsAre("Hello", " world", " 42", " !?"));
  EXPECT_THAT(words("a1b2-c"), ElementsAre("a", "1", "b", "2", "-", "c"));
}

TEST(Words, SplitContractions) {
  EXPECT_THAT(words("it's we're I've don't I'm you'll he'd"),
              ElementsAre("it", "'s", " we", "'re", " I", "'ve", " don", "'t", " I", "'m", " you",
                          "'ll", " he", "'d"));
  EXPECT_THAT(words("'sa 'S ''s 's"), ElementsAre("'s", "a", " '", "S", " ''", "s", " '", "s"));
  EXPECT_THAT(words("'l 'r'"), ElementsAre("'", "l", " '", "r", "'"));
  EXPECT_THAT(words("'"), ElementsAre("'"));
}

TEST(Words, LeaveTheLastSpaceOfARunToTheNextWord) {
  EXPECT_THAT(words("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(words("a \n b"), ElementsAre("a", " \n", " b"));
  EXPECT_THAT(words("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(words("a\tb"), ElementsAre("a", "\t", "b"));
  EXPECT_THAT(words("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(words(" "), ElementsAre(" "));
  EXPECT_THAT(words(""), ElementsAre());
}

TEST(Words, KnowTheClassesOfUnicode) {
  EXPECT_THAT(words("naïve Ⅷ½² 注意力!"), ElementsAre("naïve", " Ⅷ½²", " 注意力", "!"));
  // A no-break space is white space, but not the space that a word takes along.
  EXPECT_THAT(words("a\u00A0b"), ElementsAre("a", "\u00A0", "b"));
  EXPECT_THAT(words("a\u3000\u2003 b"), ElementsAre("a", "\u3000\u2003", " b"));
  // A zero-width space is no white space; a combining accent is no letter.
  EXPECT_THAT(words("a\u200Bb"), ElementsAre("a", "\u200B", "b"));
  EXPECT_THAT(words("e\u0301x"), ElementsAre("e", "\u0301", "x"));
}

TEST(Words, TakeInvalidBytesForOthers) {
  EXPECT_THAT(words("a\xFF\xC3(b"), ElementsAre("a", "\xFF\xC3(", "b"));
  // The first byte of a white-space character, and its last: no white space.
  EXPECT_THAT(words("a \xC2"), ElementsAre("a", " \xC2"));
  EXPECT_THAT(words("a\xA0 b"), ElementsAre("a", "\xA0", " b"));
  EXPECT_THAT(words("\xED\xA0\x80"), ElementsAre("\xED\xA0\x80"));  // a surrogate
}

TEST(Words, CutAtABoundaryAreTheSameWords) {
  const std::vector<std::string> parts = {"a",      "é",      " ",  "  ",   "\n",  "\u00A0",
                                          "\u2003", "\xC2",   "7",  "'s",   "-",   "\xA0",
                                          "\xE2",   "\u3000", "語", "\x80", "<|e", "\t"};
  RandomStream random(1, 0);
  int boundaries = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += parts[random.below(parts.size())];
    const auto whole = words(text);
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if (!is_word_boundary(text, cut)) continue;
      ++boundaries;
      auto joined = words(std::string_view(text).substr(0, cut));
      const auto rest = words(std::string_view(text).substr(cut));
      joined.insert(joined.end(), rest.begin(), rest.end());
      ASSERT_EQ(joined, whole) << printable(text) << " cut at " << cut;
    }
  }
  EXPECT_GT(boundaries, 1000);
}

TEST(CharacterClass, AgreesWithTheTableBelow128) {
  for (char32_t point = 0; point < 128; ++point) {
    EXPECT_EQ(static_cast<int>(character_class(point)), ascii_class[point]) << int(point);
  }
}

}  // namespace
}  // namespace heed
