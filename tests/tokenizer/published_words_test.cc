#include "tokenizer/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/utf8.h"
#include "tokenizer/character_class.h"

namespace heed {
namespace {

using ::testing::ElementsAre;

template <class Words>
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> result;
  for_each_word<Words>(text, [&](std::size_t begin, std::size_t end) {
    result.emplace_back(text.substr(begin, end - begin));
  });
  return result;
}

std::vector<std::string> words_of(WordPattern pattern, std::string_view text) {
  switch (pattern) {
    case WordPattern::gpt2: return words_of<Gpt2Words>(text);
    case WordPattern::llama3: return words_of<Llama3Words>(text);
    case WordPattern::qwen2: return words_of<Qwen2Words>(text);
    case WordPattern::o200k: return words_of<O200kWords>(text);
    case WordPattern::tekken: return words_of<TekkenWords>(text);
    case WordPattern::gpt2_digits: return words_of<Gpt2DigitWords>(text);
    case WordPattern::gpt2_numbers: return words_of<Gpt2NumberWords>(text);
    case WordPattern::falcon: return words_of<FalconWords>(text);
  }
  return {};
}

TEST(PublishedWords, OfLettersTakeOneCharacterBeforeThem) {
  EXPECT_THAT(words_of<Llama3Words>("Hello world\tx (y) é"),
              ElementsAre("Hello", " world", "\tx", " (", "y", ")", " é"));
  EXPECT_THAT(words_of<Llama3Words>("a\nb\u00A0c"), ElementsAre("a", "\n", "b", "\u00A0c"));
  EXPECT_THAT(words_of<Llama3Words>("e\u0301x"),
              ElementsAre("e", "\u0301x"));  // a mark is no letter
  EXPECT_THAT(words_of<Llama3Words>("--x"), ElementsAre("--", "x"));
}

TEST(PublishedWords, TakeContractionsOfAnyCase) {
  EXPECT_THAT(words_of<Llama3Words>("I'LL we'Re it'\u017F 'sa 'x'"),
              ElementsAre("I", "'LL", " we", "'Re", " it", "'\u017F", " '", "sa", " '", "x", "'"));
  EXPECT_THAT(words_of<Llama3Words>("'sa"), ElementsAre("'s", "a"));
  EXPECT_THAT(words_of<O200kWords>("I'LLx it's'"), ElementsAre("I'LL", "x", " it's", "'"));
  EXPECT_THAT(words_of<TekkenWords>("it's"), ElementsAre("it", "'s"));
}

// Punctuation, then GPT-2's words, then numbers by the letters of their bytes, three at most.
TEST(PublishedWords, OfFalconAreCutInSteps) {
  const auto words = [](std::string_view text) { return words_of<FalconWords>(text); };
  EXPECT_THAT(words("Hello, world! x$y"), ElementsAre("Hello", ",", " world", "!", " x", "$", "y"));
  EXPECT_THAT(words("don't (1+2)..."),
              ElementsAre("don", "'", "t", " ", "(", "1", "+", "2", ")..."));
  EXPECT_THAT(words("a  ,b   c  "), ElementsAre("a", "  ", ",", "b", "  ", " c", "  "));
  EXPECT_THAT(words("a\n\n b\n,"), ElementsAre("a", "\n\n", " b", "\n", ","));
  EXPECT_THAT(words("12345 67 123456"), ElementsAre("123", "45", " ", "67", " ", "123", "456"));
  EXPECT_THAT(words("v2a"), ElementsAre("v", "2", "a"));
  EXPECT_THAT(words(" €€5 €."), ElementsAre(" €€", "5", " €", "."));
  // The second byte of ò, and that of ½, stand for numbers as letters.
  EXPECT_THAT(words("aòb é"), ElementsAre("a\xC3", "\xB2", "b", " é"));
  EXPECT_THAT(words("½7½123"), ElementsAre("\xC2", "\xBD\x37", "\xC2", "\xBD", "123"));
  EXPECT_THAT(words("\xFF\xB2x"), ElementsAre("\xFF", "\xB2", "x"));  // no UTF-8
}

TEST(PublishedWords, CountDigits) {
  EXPECT_THAT(words_of<Llama3Words>("12345 6٣½7"), ElementsAre("123", "45", " ", "6٣½", "7"));
  EXPECT_THAT(words_of<Qwen2Words>("123 4"), ElementsAre("1", "2", "3", " ", "4"));
  EXPECT_THAT(words_of<O200kWords>("1234"), ElementsAre("123", "4"));
  EXPECT_THAT(words_of<TekkenWords>("12"), ElementsAre("1", "2"));
}

TEST(PublishedWords, SetDigitsApart) {
  EXPECT_THAT(words_of<Gpt2DigitWords>("x12 34  5\n6 a  b"),
              ElementsAre("x", "1", "2", " ", "3", "4", "  ", "5", "\n", "6", " a", " ", " b"));
  EXPECT_THAT(words_of<Gpt2NumberWords>("x12 34  5\n6 a  b"),
              ElementsAre("x", "12", " ", "34", "  ", "5", "\n", "6", " a", " ", " b"));
  EXPECT_THAT(words_of<Gpt2DigitWords>("it's ½٣!7'll"),
              ElementsAre("it", "'s", " ", "½", "٣", "!", "7", "'ll"));
  EXPECT_THAT(words_of<Gpt2NumberWords>("½٣ !7  "), ElementsAre("½٣", " !", "7", "  "));
}

// Digits, then GPT-2's words of each part between: as the two steps do it.
TEST(PublishedWords, BetweenDigitsAreGpt2s) {
  const std::vector<std::string> parts = {"a",  " ", "  ", "\n",     "7", "½",
                                          "'s", "'", "!",  "\u00A0", "É"};
  RandomStream random(13, 0);
  for (int round = 0; round < 50000; ++round) {
    std::string text;
    for (int i = 0; i < 8; ++i) text += parts[random.below(parts.size())];
    std::vector<std::string> single, runs;
    const auto add_part = [](const std::string& part, std::vector<std::string>& words) {
      for (std::string& word : words_of<Gpt2Words>(part)) words.push_back(std::move(word));
    };
    std::string between, digits;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t length = at < text.size() ? read_utf8(text, at).length : 1;
      const std::string character = text.substr(std::min(at, text.size()), length);
      const bool is_digit = character == "7" || character == "½";
      if (is_digit || at == text.size()) {
        add_part(between, single);
        add_part(between, runs);
        between.clear();
      }
      if (is_digit) {
        single.push_back(character);
        digits += character;
      } else {
        if (!digits.empty()) runs.push_back(digits);
        digits.clear();
        between += character;
      }
      at += length;
    }
    ASSERT_EQ(words_of<Gpt2DigitWords>(text), single) << printable(text);
    ASSERT_EQ(words_of<Gpt2NumberWords>(text), runs) << printable(text);
  }
}

TEST(PublishedWords, KeepLineBreaksTogether) {
  EXPECT_THAT(words_of<Llama3Words>("a \r\n\n  b  "), ElementsAre("a", " \r\n\n", " ", " b", "  "));
  EXPECT_THAT(words_of<Llama3Words>("!?\r\n x"), ElementsAre("!?\r\n", " x"));
  EXPECT_THAT(words_of<Llama3Words>("!\n/\n"), ElementsAre("!\n", "/\n"));
  EXPECT_THAT(words_of<O200kWords>("!\n/\nx"), ElementsAre("!\n/\n", "x"));
  EXPECT_THAT(words_of<Llama3Words>("a\u2028\u2028b"), ElementsAre("a", "\u2028", "\u2028b"));
}

TEST(PublishedWords, ByCaseBeginWhereACapitalFollows) {
  EXPECT_THAT(words_of<O200kWords>("camelCase HTTPServer ABC aB"),
              ElementsAre("camel", "Case", " HTTPServer", " ABC", " a", "B"));
  EXPECT_THAT(words_of<O200kWords>("ABªCD"), ElementsAre("ABª", "CD"));
  EXPECT_THAT(words_of<O200kWords>("注Aa"), ElementsAre("注Aa"));
  EXPECT_THAT(words_of<O200kWords>("注A"), ElementsAre("注", "A"));
  EXPECT_THAT(words_of<O200kWords>("\u0301A"), ElementsAre("\u0301", "A"));
  EXPECT_THAT(words_of<O200kWords>("\u0301Aa!\u0301"), ElementsAre("\u0301Aa", "!\u0301"));
}

TEST(PublishedWords, TakeInvalidBytesForOthers) {
  for (const WordPattern pattern : word_patterns) {
    EXPECT_THAT(words_of(pattern, "\xFF\xC3("), ElementsAre("\xFF\xC3("))
        << word_pattern_text(pattern);
  }
}

// U*W+C? and U+W*C? behind an optional character, by trying all lengths in the order of a regular
// expression; begin where nothing matches.
std::size_t cased_word_end(std::string_view text, std::size_t begin) {
  std::vector<std::size_t> ends = {begin};  // of characters
  std::vector<bool> upper;
  std::vector<bool> lower;
  std::vector<bool> before;
  while (ends.back() < text.size()) {
    const Utf8Character character = read_utf8(text, ends.back());
    const LetterCase kind = character.valid ? letter_case(character.code_point) : LetterCase::none;
    const CharacterClass general =
        character.valid ? character_class(character.code_point) : CharacterClass::other;
    upper.push_back(kind == LetterCase::upper || kind == LetterCase::either);
    lower.push_back(kind == LetterCase::lower || kind == LetterCase::either);
    before.push_back(general != CharacterClass::letter && general != CharacterClass::number &&
                     character.code_point != '\r' && character.code_point != '\n');
    ends.push_back(ends.back() + character.length);
  }
  const auto run = [](const std::vector<bool>& is, std::size_t from) {
    std::size_t end = from;
    while (end < is.size() && is[end]) ++end;
    return end;
  };
  for (const std::size_t min_upper : {0, 1}) {
    for (const std::size_t first : {1, 0}) {
      if (first == 1 && !before[0]) continue;
      const std::size_t longest = run(upper, first);
      for (std::size_t middle = longest + 1; middle-- > first + min_upper;) {
        const std::size_t end = run(lower, middle);
        if (end > middle || min_upper == 1) return ends[end];
      }
    }
  }
  return begin;
}

TEST(PublishedWords, ByCaseEqualTheExpressionTriedInOrder) {
  const std::vector<std::string> parts = {"A", "a", "ª",  "\u0301", "語", "!",
                                          " ", "1", "\n", "É",      "ß",  "ǅ"};
  RandomStream random(11, 0);
  int matched = 0;
  for (int round = 0; round < 200000; ++round) {
    std::string text;
    const std::size_t count = 1 + random.below(7);
    for (std::size_t i = 0; i < count; ++i) text += parts[random.below(parts.size())];
    const std::size_t expected = cased_word_end(text, 0);
    if (expected == 0) continue;
    ++matched;
    ASSERT_EQ(TekkenWords::word_end(text, 0), expected) << printable(text);
  }
  EXPECT_GT(matched, 100000);
}

TEST(PublishedWords, CutAtABoundaryAreTheSameWords) {
  const std::vector<std::string> parts = {"a",  "É",      " ",  "  ", "\n",  "\r",    "\u00A0",
                                          "/",  "\xC2",   "7",  "'s", "-",   "\xA0",  "\xE2",
                                          "語", "\u0301", "\t", "'",  "<|e", "\u2003"};
  RandomStream random(12, 0);
  for (const WordPattern pattern : word_patterns) {
    int boundaries = 0;
    for (int round = 0; round < 3000; ++round) {
      std::string text;
      for (int i = 0; i < 12; ++i) text += parts[random.below(parts.size())];
      const auto whole = words_of(pattern, text);
      for (std::size_t cut = 1; cut < text.size(); ++cut) {
        if (!is_word_boundary(pattern, text, cut)) continue;
        ++boundaries;
        auto joined = words_of(pattern, std::string_view(text).substr(0, cut));
        const auto rest = words_of(pattern, std::string_view(text).substr(cut));
        joined.insert(joined.end(), rest.begin(), rest.end());
        ASSERT_EQ(joined, whole) << printable(text) << " cut at " << cut;
      }
    }
    EXPECT_GT(boundaries, 1000);
  }
}

TEST(WordPattern, IsFoundByItsText) {
  for (const WordPattern pattern : word_patterns) {
    EXPECT_EQ(find_word_pattern(word_pattern_text(pattern)), pattern);
  }
  EXPECT_EQ(find_word_pattern(R"(\p{L}+)"), std::nullopt);
}

TEST(CharacterClass, KnowsWordCharacters) {
  for (const char32_t inside : {U'a', U'É', U'語', U'7', U'_', U'\u0301', U'\u200D', U'\u24D0'}) {
    EXPECT_TRUE(is_word_character(inside)) << static_cast<int>(inside);
  }
  for (const char32_t outside : {U' ', U'-', U'½', U'\u2603', U'\u00AD'}) {
    EXPECT_FALSE(is_word_character(outside)) << static_cast<int>(outside);
  }
}

}  // namespace
}  // namespace heed
