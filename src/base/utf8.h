// UTF-8, read one character at a time, strictly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

struct Utf8Character {
  char32_t code_point = 0;  // for an invalid byte: the byte itself
  std::uint8_t length = 1;  // bytes that it takes; an invalid byte stands alone
  bool valid = false;
};

// The character that begins at `position` (< text.size()). Overlong forms, surrogates, code points
// above U+10FFFF and truncated sequences are invalid; then one byte is consumed.
Utf8Character read_utf8(std::string_view text, std::size_t position);

bool is_valid_utf8(std::string_view text);

void append_utf8(std::string& text, char32_t code_point);

// Bytes made printable: valid UTF-8 as it is; control characters, invalid bytes and the backslash
// escaped as \n, \t, \r, \\, \xE2 or \u{85}.
std::string printable(std::string_view bytes);

// printable() in quotes, cut after about 60 bytes: for error messages.
std::string in_quotes(std::string_view bytes);

}  // namespace heed
