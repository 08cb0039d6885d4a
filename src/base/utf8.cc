#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace heed {
namespace {

bool controls_terminal(const Utf8Character& character) {
  const char32_t c = character.code_point;
  const bool sets_direction = c == 0x61C || c == 0x200E || c == 0x200F ||
                              (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  return !character.valid || c < 0x20 || (c >= 0x7F && c < 0xA0) || sets_direction;
}

std::string escape_of(const Utf8Character& character) {
  const auto value = static_cast<std::uint32_t>(character.code_point);
  if (!character.valid || value < 0x80) {
    switch (value) {
      case '\n': return "\\n";
      case '\t': return "\\t";
      case '\r': return "\\r";
      default: return fmt::format("\\x{:02X}", value);
    }
  }
  return fmt::format("\\u{{{:X}}}", value);
}

std::string escaped_except(std::string_view text, std::string_view kept) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = read_utf8(text, i);
    const std::string_view bytes = text.substr(i, character.length);
    i += character.length;
    if (!controls_terminal(character) || kept.find(bytes) != std::string_view::npos) {
      result += bytes;
    } else {
      result += escape_of(character);
    }
  }
  return result;
}

}  // namespace

Utf8Character read_utf8(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[position + i]); };
  const std::size_t left = text.size() - position;
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  if (first >= 0xC2 && first < 0xE0 && left >= 2 && continues(1)) {
    return {static_cast<char32_t>((first & 0x1F) << 6 | (byte(1) & 0x3F)), 2, true};
  }
  if (first >= 0xE0 && first < 0xF0 && left >= 3 && continues(1) && continues(2)) {
    const char32_t value =
        static_cast<char32_t>((first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F));
    if (value >= 0x800 && (value < 0xD800 || value > 0xDFFF)) return {value, 3, true};
  }
  if (first >= 0xF0 && first < 0xF5 && left >= 4 && continues(1) && continues(2) && continues(3)) {
    const char32_t value = static_cast<char32_t>((first & 0x07) << 18 | (byte(1) & 0x3F) << 12 |
                                                 (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F));
    if (value >= 0x10000 && value <= 0x10FFFF) return {value, 4, true};
  }
  return {first, 1, false};
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = read_utf8(text, i);
    if (!character.valid) return false;
    i += character.length;
  }
  return true;
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::string escape_controls(std::string_view text) { return escaped_except(text, ""); }

std::string escape_controls_in_lines(std::string_view text) { return escaped_except(text, "\n\t"); }

std::string printable(std::string_view bytes) {
  std::string result;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t end = std::min(bytes.find('\\', i), bytes.size());
    result += escape_controls(bytes.substr(i, end - i));
    if (end < bytes.size()) result += "\\\\";
    i = end;
  }
  return result;
}

std::string in_quotes(std::string_view bytes) {
  constexpr std::size_t longest = 60;
  if (bytes.size() <= longest) return fmt::format("'{}'", printable(bytes));
  return fmt::format("'{}...' ({} bytes)", printable(bytes.substr(0, longest)), bytes.size());
}

}  // namespace heed
