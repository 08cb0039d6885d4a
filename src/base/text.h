// Lines of a text, letters of ASCII, and names that are near to another.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// The text without the byte order mark (EF BB BF) that some programs put before UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

// The lines of `text`, as views of it, without byte order mark and line ends (\n or \r\n).
std::vector<std::string_view> text_lines(std::string_view text);

// The text without these characters at both ends.
std::string_view trimmed(std::string_view text, std::string_view spaces = " \t\r\n");

// Letters of ASCII, whatever the locale of the process.
constexpr char ascii_lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// Bytes above 0x7F stay as they are.
inline std::string ascii_lower(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) letter = ascii_lower(letter);
  return lower;
}

constexpr bool is_ascii_punctuation(char letter) {
  return (letter >= '!' && letter <= '/') || (letter >= ':' && letter <= '@') ||
         (letter >= '[' && letter <= '`') || (letter >= '{' && letter <= '~');
}

// Suggests known names for an unknown one, for "did you mean …?". Returns up to `count` candidates,
// nearest first, by edit distance (Levenshtein 1966). Only the first 100 bytes of `name` are
// compared.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates,
                                       std::size_t count);

}  // namespace heed
