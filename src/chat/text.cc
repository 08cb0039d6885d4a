#include "chat/text.h"

#include <string.h>

#include <algorithm>

namespace heed::chat {
namespace {

constexpr char32_t replacement_character = 0xFFFD;

bool continues(std::string_view text, std::size_t position) {
  return position < text.size() && (static_cast<unsigned char>(text[position]) & 0xC0) == 0x80;
}

// Bytes that the first byte of a character announces; 1 for a byte that cannot begin one.
std::size_t announced_size(unsigned char first) {
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 1;
}

// Where the character that ends at `end` (> 0) begins.
std::size_t previous_character(std::string_view text, std::size_t end) {
  std::size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && continues(text, begin)) --begin;
  return begin + character_size(text, begin) == end ? begin : end - 1;
}

}  // namespace

Text::Text(std::string_view bytes, Origin origin)
    : bytes_(bytes), origins_(bytes.size(), static_cast<char>(origin)) {}

Text Text::as_markup() const {
  Text result = *this;
  result.is_markup_ = true;
  return result;
}

Text Text::part(std::size_t begin, std::size_t size) const {
  Text result;
  result.is_markup_ = is_markup_;
  result.bytes_ = bytes_.substr(begin, size);
  result.origins_ = origins_.substr(begin, size);
  return result;
}

void Text::append(const Text& other) {
  bytes_ += other.bytes_;
  origins_ += other.origins_;
}

void Text::append(const Text& other, std::size_t begin, std::size_t size) {
  bytes_.append(other.bytes_, begin, size);
  origins_.append(other.origins_, begin, size);
}

void Text::append(std::string_view bytes, Origin origin) {
  bytes_ += bytes;
  origins_.append(bytes.size(), static_cast<char>(origin));
}

std::size_t character_size(std::string_view text, std::size_t begin) {
  const std::size_t size = announced_size(static_cast<unsigned char>(text[begin]));
  for (std::size_t i = 1; i < size; ++i) {
    if (!continues(text, begin + i)) return 1;
  }
  if (size < 3) return size;
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  const auto first = static_cast<unsigned char>(text[begin]);
  const auto second = static_cast<unsigned char>(text[begin + 1]);
  const bool invalid = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return invalid ? 1 : size;
}

char32_t character_at(std::string_view text, std::size_t begin) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[begin + i]));
  };
  switch (character_size(text, begin)) {
    case 2: return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3: return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    case 4:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
             (byte(3) & 0x3F);
    default: return byte(0) < 0x80 ? byte(0) : replacement_character;
  }
}

std::size_t character_count(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); i += character_size(text, i)) ++count;
  return count;
}

std::size_t offset_after(std::string_view text, std::size_t begin, std::size_t count) {
  for (; count > 0 && begin < text.size(); --count) begin += character_size(text, begin);
  return begin;
}

std::vector<std::size_t> character_offsets(std::string_view text) {
  std::vector<std::size_t> offsets;
  for (std::size_t i = 0; i < text.size(); i += character_size(text, i)) offsets.push_back(i);
  offsets.push_back(text.size());
  return offsets;
}

void append_character(std::string& text, char32_t character) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (character < 0x80) {
    add(character);
  } else if (character < 0x800) {
    add(0xC0 | character >> 6);
    add(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    add(0xE0 | character >> 12);
    add(0x80 | (character >> 6 & 0x3F));
    add(0x80 | (character & 0x3F));
  } else {
    add(0xF0 | character >> 18);
    add(0x80 | (character >> 12 & 0x3F));
    add(0x80 | (character >> 6 & 0x3F));
    add(0x80 | (character & 0x3F));
  }
}

// memmem() is linear where std::string_view::find() takes the product of both sizes.
std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const void* const found =
      ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t find_last_text(std::string_view text, std::string_view wanted) {
  const std::string backwards(text.rbegin(), text.rend());
  const std::string wanted_backwards(wanted.rbegin(), wanted.rend());
  const std::size_t found = find_text(backwards, wanted_backwards);
  return found == std::string_view::npos ? found : text.size() - found - wanted.size();
}

namespace {

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

}  // namespace

Line line_at(std::string_view text, std::size_t begin) {
  Line line{begin, begin, begin};
  while (line.end < text.size() && !ends_line(character_at(text, line.end))) {
    line.end += character_size(text, line.end);
  }
  line.next = line.end;
  if (text.substr(line.end).starts_with("\r\n")) {
    line.next += 2;
  } else if (line.end < text.size()) {
    line.next += character_size(text, line.end);
  }
  return line;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

Text strip(const Text& text, Side side, std::optional<std::string_view> characters) {
  const std::string_view bytes = text.bytes();
  std::vector<char32_t> removed;
  if (characters) {
    for (std::size_t i = 0; i < characters->size(); i += character_size(*characters, i)) {
      removed.push_back(character_at(*characters, i));
    }
    std::ranges::sort(removed);
  }
  const auto goes = [&](std::size_t position) {
    const char32_t character = character_at(bytes, position);
    return characters ? std::ranges::binary_search(removed, character) : is_space(character);
  };
  std::size_t begin = 0;
  std::size_t end = bytes.size();
  if (side != Side::right) {
    while (begin < end && goes(begin)) begin += character_size(bytes, begin);
  }
  if (side != Side::left) {
    while (end > begin) {
      const std::size_t last = previous_character(bytes, end);
      if (!goes(last)) break;
      end = last;
    }
  }
  return text.part(begin, end - begin);
}

std::size_t size_without_trailing_space(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t last = previous_character(text, end);
    if (!is_space(character_at(text, last))) break;
    end = last;
  }
  return end;
}

std::size_t leading_space(std::string_view text) {
  std::size_t begin = 0;
  while (begin < text.size() && is_space(character_at(text, begin))) {
    begin += character_size(text, begin);
  }
  return begin;
}

Text replace(const Text& text, std::string_view old, const Text& replacement, std::size_t most) {
  const std::string_view bytes = text.bytes();
  Text result;
  std::size_t position = 0;
  for (std::size_t done = 0; done < most; ++done) {
    if (old.empty()) {
      result.append(replacement);
      if (position == bytes.size()) return result;
      const std::size_t size = character_size(bytes, position);
      result.append(text, position, size);
      position += size;
      continue;
    }
    const std::size_t found = find_text(bytes, old, position);
    if (found == std::string_view::npos) break;
    result.append(text, position, found - position);
    result.append(replacement);
    position = found + old.size();
  }
  result.append(text, position, bytes.size() - position);
  return result;
}

}  // namespace heed::chat
