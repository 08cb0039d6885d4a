// Letters of ASCII, whatever the locale of the process.
#pragma once

#include <string>

namespace heed {

constexpr char ascii_lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// Bytes above 0x7F stay as they are.
inline std::string ascii_lower(std::string text) {
  for (char& letter : text) letter = ascii_lower(letter);
  return text;
}

constexpr bool is_ascii_punctuation(char letter) {
  return (letter >= '!' && letter <= '/') || (letter >= ':' && letter <= '@') ||
         (letter >= '[' && letter <= '`') || (letter >= '{' && letter <= '~');
}

}  // namespace heed
