// The four character classes of GPT-2's pre-tokenizer.
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
