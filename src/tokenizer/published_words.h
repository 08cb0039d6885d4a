// State machines equal to the patterns of word_pattern.h, other than GPT-2's (words.h). Invalid
// bytes are characters of the class `other`, one each.
#pragma once

#include <cstddef>
#include <string_view>

namespace heed {

// LLaMA 3 and Qwen2, which differ in the number of digits that a word may have:
//
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,most_digits}|
//    ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <int most_digits>
struct WordsOfLetters {
  // End of the word that begins at `begin` (< text.size()).
  static std::size_t word_end(std::string_view text, std::size_t begin);
};

// o200k and tekken, which begin a word where a capital follows a small letter, with
// U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and W = [\p{Ll}\p{Lm}\p{Lo}\p{M}], and only o200k with C:
//
//   [^\r\n\p{L}\p{N}]?U*W+C?|[^\r\n\p{L}\p{N}]?U+W*C?|\p{N}{1,most_digits}|
//    ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+       C = (?i:'s|'t|'re|'ve|'m|'ll|'d)
template <int most_digits, bool contractions>
struct WordsByCase {
  static std::size_t word_end(std::string_view text, std::size_t begin);
};

// Digits (\p{N}) apart, one each or in runs, and GPT-2's words of the text between them.
enum class DigitWords { single, runs };
template <DigitWords digits>
struct WordsBetweenDigits {
  static std::size_t word_end(std::string_view text, std::size_t begin);
};

using Llama3Words = WordsOfLetters<3>;
using Qwen2Words = WordsOfLetters<1>;
using O200kWords = WordsByCase<3, true>;
using TekkenWords = WordsByCase<1, false>;
using Gpt2DigitWords = WordsBetweenDigits<DigitWords::single>;
using Gpt2NumberWords = WordsBetweenDigits<DigitWords::runs>;

extern template struct WordsOfLetters<3>;
extern template struct WordsOfLetters<1>;
extern template struct WordsByCase<3, true>;
extern template struct WordsByCase<1, false>;
extern template struct WordsBetweenDigits<DigitWords::single>;
extern template struct WordsBetweenDigits<DigitWords::runs>;

}  // namespace heed
