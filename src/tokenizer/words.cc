#include "tokenizer/words.h"

#include "base/utf8.h"

namespace heed {
namespace {

CharacterClass class_of(const Utf8Character& character) {
  return character.valid ? character_class(character.code_point) : CharacterClass::other;
}

}  // namespace

CharacterClass class_at_beyond_ascii(std::string_view text, std::size_t position) {
  return class_of(read_utf8(text, position));
}

std::size_t run_end_beyond_ascii(std::string_view text, std::size_t position,
                                 CharacterClass wanted) {
  while (position < text.size()) {
    const std::uint8_t known = ascii_class[static_cast<unsigned char>(text[position])];
    if (known == not_ascii) {
      const Utf8Character character = read_utf8(text, position);
      if (class_of(character) != wanted) break;
      position += character.length;
    } else {
      if (known != static_cast<std::uint8_t>(wanted)) break;
      ++position;
    }
  }
  return position;
}

std::size_t space_word_end(std::string_view text, std::size_t position) {
  std::size_t last = position;  // where the last white-space character of the run begins
  std::size_t end = position;
  while (end < text.size()) {
    const Utf8Character character = read_utf8(text, end);
    if (class_of(character) != CharacterClass::space) break;
    last = end;
    end += character.length;
  }
  return end == text.size() || last == position ? end : last;
}

bool is_word_boundary(std::string_view text, std::size_t position) {
  if (position == 0 || position >= text.size()) return true;
  constexpr auto space = static_cast<std::uint8_t>(CharacterClass::space);
  if (ascii_class[static_cast<unsigned char>(text[position])] != space) return false;
  const std::uint8_t before = ascii_class[static_cast<unsigned char>(text[position - 1])];
  if (before != not_ascii) return before != space;
  // White space beyond ASCII takes two or three bytes. UTF-8 shows where a character begins, so
  // such bytes are that character in any context.
  for (std::size_t length = 2; length <= 3 && length <= position; ++length) {
    const Utf8Character character = read_utf8(text, position - length);
    if (character.valid && character.length == length &&
        class_of(character) == CharacterClass::space) {
      return false;
    }
  }
  return true;
}

}  // namespace heed
