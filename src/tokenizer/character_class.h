// The character classes of pre-tokenizers.
#pragma once

#include <array>
#include <cstdint>

namespace heed {

enum class CharacterClass : std::uint8_t {
  other,   // everything else, and every byte that is not valid UTF-8
  letter,  // \p{L}
  number,  // \p{N}
  space,   // \s, the Unicode property White_Space
};

// The class of any code point up to U+10FFFF, by the Unicode version of utf8proc.
CharacterClass character_class(char32_t code_point);

// Letters and marks as patterns that look at case have them.
enum class LetterCase : std::uint8_t {
  none,    // neither letter nor mark
  upper,   // \p{Lu} and \p{Lt}
  lower,   // \p{Ll}
  either,  // \p{Lm}, \p{Lo} and \p{M}
};

LetterCase letter_case(char32_t code_point);

// \w: letters, marks, decimal digits, connecting punctuation and other alphabetic characters.
bool is_word_character(char32_t code_point);

// What BERT's words are cut at: \p{P}, and all of ASCII that is neither letter, digit nor space.
bool is_bert_punctuation(char32_t code_point);

// Classes of the bytes below 0x80, which are characters themselves; for the others `not_ascii`.
inline constexpr std::uint8_t not_ascii = 4;
inline constexpr std::array<std::uint8_t, 256> ascii_class = [] {
  std::array<std::uint8_t, 256> table{};
  for (int byte = 0; byte < 256; ++byte) {
    CharacterClass value = CharacterClass::other;
    const int lower = byte | 0x20;
    if (lower >= 'a' && lower <= 'z') value = CharacterClass::letter;
    if (byte >= '0' && byte <= '9') value = CharacterClass::number;
    if (byte == ' ' || (byte >= '\t' && byte <= '\r')) value = CharacterClass::space;
    table[byte] = byte < 0x80 ? static_cast<std::uint8_t>(value) : not_ascii;
  }
  return table;
}();

}  // namespace heed
