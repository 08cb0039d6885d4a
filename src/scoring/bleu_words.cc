#include "scoring/bleu_words.h"

#include <fmt/ranges.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "scoring/characters.h"

namespace heed::scoring {
namespace {

constexpr std::array<std::pair<BleuTokenization, std::string_view>, 5> names{{
    {BleuTokenization::thirteen_a, "13a"},
    {BleuTokenization::none, "none"},
    {BleuTokenization::characters, "char"},
    {BleuTokenization::international, "intl"},
    {BleuTokenization::chinese, "zh"},
}};

enum class Separated { first, second };

// mteval is a list of substitutions of two neighbours, each from the left without overlap: where
// `first` and `second` hold for a pair, one of the two gets spaces on both sides.
template <class First, class Second>
std::u32string separate(const std::u32string& text, Separated which, First first, Second second) {
  std::u32string result;
  result.reserve(text.size() * 2);
  for (std::size_t i = 0; i < text.size();) {
    const bool matches = i + 1 < text.size() && first(text[i]) && second(text[i + 1]);
    if (!matches) {
      result += text[i++];
      continue;
    }
    if (which == Separated::first) result += U' ';
    result += text[i];
    result += U' ';
    result += text[i + 1];
    if (which == Separated::second) result += U' ';
    i += 2;
  }
  return result;
}

template <class Matches>
std::u32string surround(const std::u32string& text, Matches matches) {
  std::u32string result;
  result.reserve(text.size() * 2);
  for (const char32_t character : text) {
    if (matches(character)) {
      result += U' ';
      result += character;
      result += U' ';
    } else {
      result += character;
    }
  }
  return result;
}

void replace_all(std::u32string& text, std::u32string_view from, std::u32string_view to) {
  for (std::size_t i = text.find(from); i != std::u32string::npos;
       i = text.find(from, i + to.size())) {
    text.replace(i, from.size(), to);
  }
}

bool is_ascii_digit(char32_t character) { return character >= U'0' && character <= U'9'; }
bool is_no_ascii_digit(char32_t character) { return !is_ascii_digit(character); }
bool is_period_or_comma(char32_t character) { return character == U'.' || character == U','; }
bool is_hyphen(char32_t character) { return character == U'-'; }

// ASCII punctuation that always stands alone: all but the apostrophe, and period, comma and hyphen,
// which may belong to a number or a word.
bool always_stands_alone(char32_t character) {
  const bool is_ascii_punctuation =
      (character >= U'!' && character <= U'/') || (character >= U':' && character <= U'@') ||
      (character >= U'[' && character <= U'`') || (character >= U'{' && character <= U'~');
  return is_ascii_punctuation && character != U'\'' && !is_hyphen(character) &&
         !is_period_or_comma(character);
}

// What 13a does with the words of Western languages.
std::u32string western_words(const std::u32string& characters) {
  std::u32string text = surround(characters, always_stands_alone);
  text = separate(text, Separated::second, is_no_ascii_digit, is_period_or_comma);
  text = separate(text, Separated::first, is_period_or_comma, is_no_ascii_digit);
  return separate(text, Separated::second, is_ascii_digit, is_hyphen);
}

std::u32string thirteen_a(std::u32string text) {
  replace_all(text, U"<skipped>", U"");
  replace_all(text, U"-\n", U"");
  replace_all(text, U"\n", U" ");
  replace_all(text, U"&quot;", U"\"");
  replace_all(text, U"&amp;", U"&");
  replace_all(text, U"&lt;", U"<");
  replace_all(text, U"&gt;", U">");
  return western_words(U" " + text + U" ");
}

utf8proc_category_t general_category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

bool is_punctuation(char32_t character) {
  const utf8proc_category_t kind = general_category(character);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_symbol(char32_t character) {
  const utf8proc_category_t kind = general_category(character);
  return kind >= UTF8PROC_CATEGORY_SM && kind <= UTF8PROC_CATEGORY_SO;
}

bool is_no_number(char32_t character) {
  const utf8proc_category_t kind = general_category(character);
  return kind < UTF8PROC_CATEGORY_ND || kind > UTF8PROC_CATEGORY_NO;
}

// First and last characters of what stands alone in Chinese text: ideographs (4E00 to 9FBB,
// extension A, compatibility), radicals, strokes, bopomofo, CJK punctuation, enclosed and squared
// signs, wide and half-width forms. sacreBLEU means extension B (from U+20000 on) to be among them,
// but writes it with four digits, and so has U+2001 to U+2A6D instead: dashes, quotation marks,
// arrows and mathematical signs. Scores are its own, so this is, too; extension B stays together.
constexpr std::array<std::pair<char32_t, char32_t>, 17> chinese_ranges{{{0x2001, 0x2A6D},
                                                                        {0x2E80, 0x2EFF},
                                                                        {0x2F00, 0x2FDF},
                                                                        {0x2FF0, 0x2FFF},
                                                                        {0x3000, 0x303F},
                                                                        {0x3100, 0x312F},
                                                                        {0x31A0, 0x31BF},
                                                                        {0x31C0, 0x31EF},
                                                                        {0x3200, 0x33FF},
                                                                        {0x3400, 0x4DB5},
                                                                        {0x4E00, 0x9FBB},
                                                                        {0xF900, 0xFA2D},
                                                                        {0xFA30, 0xFA6A},
                                                                        {0xFA70, 0xFAD9},
                                                                        {0xFE10, 0xFE1F},
                                                                        {0xFE30, 0xFE4F},
                                                                        {0xFF00, 0xFFEF}}};

bool is_chinese(char32_t character) {
  return std::ranges::any_of(chinese_ranges, [character](const auto& range) {
    return range.first <= character && character <= range.second;
  });
}

// Unlike 13a, without spaces around the text: a period at its end is no word of its own.
std::u32string chinese(const std::u32string& text) {
  const auto begin = std::ranges::find_if_not(text, is_white_space);
  return western_words(surround({begin, text.end()}, is_chinese));
}

// A period that ends a sentence after a number stays with it, as in mteval-v14.
std::u32string international(std::u32string text) {
  text = separate(text, Separated::second, is_no_number, is_punctuation);
  text = separate(text, Separated::first, is_punctuation, is_no_number);
  return surround(text, is_symbol);
}

std::vector<std::u32string> single_characters(const std::u32string& text) {
  std::vector<std::u32string> characters;
  for (const char32_t character : without_space(text)) characters.emplace_back(1, character);
  return characters;
}

}  // namespace

std::string name_of(BleuTokenization tokenization) {
  const auto found =
      std::ranges::find(names, tokenization, [](const auto& name) { return name.first; });
  return std::string(found->second);
}

std::vector<std::string> bleu_tokenization_names() {
  std::vector<std::string> all;
  for (const auto& name : names) all.emplace_back(name.second);
  return all;
}

BleuTokenization bleu_tokenization_from_name(std::string_view name) {
  const auto found = std::ranges::find(names, name, [](const auto& pair) { return pair.second; });
  if (found == names.end()) {
    fail(ErrorCode::invalid_argument, "there is no tokenization '{}'; expected {}", name,
         fmt::join(bleu_tokenization_names(), ", "));
  }
  return found->first;
}

std::vector<std::u32string> bleu_words(std::u32string_view sentence,
                                       BleuTokenization tokenization) {
  const std::u32string text = without_trailing_space(sentence);
  switch (tokenization) {
    case BleuTokenization::thirteen_a: return split_at_space(thirteen_a(text));
    case BleuTokenization::none: return split_at_space(text);
    case BleuTokenization::characters: return single_characters(text);
    case BleuTokenization::international: return split_at_space(international(text));
    case BleuTokenization::chinese: return split_at_space(chinese(text));
  }
  return {};
}

}  // namespace heed::scoring
