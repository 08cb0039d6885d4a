// GPT-2's pre-tokenizer, as a state machine equal to its regular expression
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// The words cover the text without gaps. Bytes that are not valid UTF-8 are characters of the class
// `other`, one each, so that every byte string splits, and joins again to itself.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "tokenizer/character_class.h"

namespace heed {

// End of the longest run of characters of class `wanted` from `position` on, in the general case.
std::size_t run_end_beyond_ascii(std::string_view text, std::size_t position,
                                 CharacterClass wanted);

// The class of the character at `position` (< text.size()).
CharacterClass class_at_beyond_ascii(std::string_view text, std::size_t position);

// End of the white-space word that begins at `position`: the whole run at the end of the text, else
// the run without its last character (which may be the space before the next word), at least one.
std::size_t space_word_end(std::string_view text, std::size_t position);

// Whether a text may be split here without changing its words: a white-space character after
// another kind always starts a word, and no earlier word depends on it.
bool is_word_boundary(std::string_view text, std::size_t position);

inline CharacterClass class_at(std::string_view text, std::size_t position) {
  const std::uint8_t known = ascii_class[static_cast<unsigned char>(text[position])];
  if (known != not_ascii) [[likely]]
    return static_cast<CharacterClass>(known);
  return class_at_beyond_ascii(text, position);
}

inline std::size_t run_end(std::string_view text, std::size_t position, CharacterClass wanted) {
  const auto code = static_cast<std::uint8_t>(wanted);
  std::uint8_t found = code;
  while (position < text.size() &&
         (found = ascii_class[static_cast<unsigned char>(text[position])]) == code) {
    ++position;
  }
  if (found == not_ascii) [[unlikely]]
    return run_end_beyond_ascii(text, position, wanted);
  return position;
}

// Length of the contraction ('s 't 're 've 'm 'll 'd) at an apostrophe, or 0.
inline std::size_t contraction_length(std::string_view text, std::size_t position) {
  const std::size_t left = text.size() - position;
  if (left < 2) return 0;
  const char first = text[position + 1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (left < 3) return 0;
  const char second = text[position + 2];
  const bool two_letters = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                           (first == 'l' && second == 'l');
  return two_letters ? 3 : 0;
}

// End of the word that begins at `begin` (< text.size()).
inline std::size_t word_end(std::string_view text, std::size_t begin) {
  if (text[begin] == '\'') {
    const std::size_t length = contraction_length(text, begin);
    if (length > 0) return begin + length;
  }
  std::size_t first = begin;
  if (text[begin] == ' ' && begin + 1 < text.size()) first = begin + 1;
  const CharacterClass kind = class_at(text, first);
  if (kind == CharacterClass::space) return space_word_end(text, begin);
  return run_end(text, first, kind);
}

struct Gpt2Words {
  static std::size_t word_end(std::string_view text, std::size_t begin) {
    return heed::word_end(text, begin);
  }
};

// Calls visit(begin, end) for each word of the text, in order.
template <class Words = Gpt2Words, class Visit>
void for_each_word(std::string_view text, Visit&& visit) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = Words::word_end(text, begin);
    visit(begin, end);
    begin = end;
  }
}

// How published byte-level tokenizers split a text into words: by regular expressions, or by steps
// that one expression says as well.
enum class WordPattern {
  gpt2,    // also GPT-NeoX and Pythia
  llama3,  // also cl100k of GPT-4
  qwen2,   // also Qwen3
  o200k,   // GPT-4o
  tekken,  // Mistral NeMo and later
  // Digits are words apart, one each or in runs (the step Digits), and GPT-2's are found in the
  // text between them.
  gpt2_digits,  // StarCoder2
  gpt2_numbers,
  // Falcon: runs of punctuation apart, GPT-2's words of the text between them, and of these,
  // written as letters for bytes, numbers apart, three digits at most. No expression says it.
  falcon,
};

// Those that an expression says.
inline constexpr std::array word_patterns = {
    WordPattern::gpt2,   WordPattern::llama3,      WordPattern::qwen2,       WordPattern::o200k,
    WordPattern::tekken, WordPattern::gpt2_digits, WordPattern::gpt2_numbers};

// Whether it is the step Digits before GPT-2's pattern.
inline bool sets_digits_apart(WordPattern pattern) {
  return pattern == WordPattern::gpt2_digits || pattern == WordPattern::gpt2_numbers;
}

// The pattern as tokenizer.json has it; of those that set digits apart, what their steps do; none
// of Falcon.
std::string_view word_pattern_text(WordPattern pattern);

std::optional<WordPattern> find_word_pattern(std::string_view text);

// Whether a text may be split here without changing its words: before ASCII white space after
// another kind of character. Only GPT-2's words, and those that set digits apart, may begin with a
// line break there.
bool is_word_boundary(WordPattern pattern, std::string_view text, std::size_t position);

// State machines equal to the patterns, other than GPT-2's. Invalid
// bytes are characters of the class `other`, one each.

// LLaMA 3 and Qwen2, which differ in the number of digits that a word may have:
//
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max_digits}|
//    ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <int max_digits>
struct WordsOfLetters {
  // End of the word that begins at `begin` (< text.size()).
  static std::size_t word_end(std::string_view text, std::size_t begin);
};

// o200k and tekken, which begin a word where a capital follows a small letter, with
// U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and W = [\p{Ll}\p{Lm}\p{Lo}\p{M}], and only o200k with C:
//
//   [^\r\n\p{L}\p{N}]?U*W+C?|[^\r\n\p{L}\p{N}]?U+W*C?|\p{N}{1,max_digits}|
//    ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+       C = (?i:'s|'t|'re|'ve|'m|'ll|'d)
enum class Contractions { part_of_words, apart };
template <int max_digits, Contractions contractions>
struct WordsByCase {
  static std::size_t word_end(std::string_view text, std::size_t begin);
};

// Digits (\p{N}) apart, one each or in runs, and GPT-2's words of the text between them.
enum class DigitWords { single, runs };
template <DigitWords digits>
struct WordsBetweenDigits {
  static std::size_t word_end(std::string_view text, std::size_t begin);
};

// A word may begin within a character: bytes that stand for numbers as letters (of ò, the second)
// are set apart too.
struct FalconWords {
  static std::size_t word_end(std::string_view text, std::size_t begin);
};

using Llama3Words = WordsOfLetters<3>;
using Qwen2Words = WordsOfLetters<1>;
using O200kWords = WordsByCase<3, Contractions::part_of_words>;
using TekkenWords = WordsByCase<1, Contractions::apart>;
using Gpt2DigitWords = WordsBetweenDigits<DigitWords::single>;
using Gpt2NumberWords = WordsBetweenDigits<DigitWords::runs>;

extern template struct WordsOfLetters<3>;
extern template struct WordsOfLetters<1>;
extern template struct WordsByCase<3, Contractions::part_of_words>;
extern template struct WordsByCase<1, Contractions::apart>;
extern template struct WordsBetweenDigits<DigitWords::single>;
extern template struct WordsBetweenDigits<DigitWords::runs>;

}  // namespace heed
