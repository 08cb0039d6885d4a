// UTF-8, read one character at a time, strictly, and shown without control characters.
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

// A message for a terminal or a log, on one line: control characters, marks of writing direction
// and bytes that are not UTF-8 as \n, \x1B, \u{85} or \u{202E}, so that what a file or a request
// holds cannot move the cursor, hide text or write lines of its own. Everything else stays,
// backslashes included, so that escaping twice changes nothing more.
std::string escape_controls(std::string_view text);

// The same for text of several lines: line breaks and tabs stay.
std::string escape_controls_in_lines(std::string_view text);

// The same on one line, with backslashes as \\: bytes can be told apart.
std::string printable(std::string_view bytes);

// printable() in quotes, cut after about 60 bytes: for error messages.
std::string in_quotes(std::string_view bytes);

}  // namespace heed
