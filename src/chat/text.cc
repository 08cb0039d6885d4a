#include "chat/text.h"

#include <string.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>

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

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

// Letters that become several in upper or title case, as Unicode's SpecialCasing states for every
// language: ß, ligatures, and Greek letters with marks.

struct SpecialLetter {
  char32_t letter = 0;
  std::string_view upper;
  std::string_view title;
};

// In the order of the letters.
constexpr std::array<SpecialLetter, 102> special_letters = {{
    {0x00DF, "SS", "Ss"},
    {0x0149, "\u02BCN", "\u02BCN"},
    {0x01F0, "J\u030C", "J\u030C"},
    {0x0390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x03B0, "\u03A5\u0308\u0301", "\u03A5\u0308\u0301"},
    {0x0587, "\u0535\u0552", "\u0535\u0582"},
    {0x1E96, "H\u0331", "H\u0331"},
    {0x1E97, "T\u0308", "T\u0308"},
    {0x1E98, "W\u030A", "W\u030A"},
    {0x1E99, "Y\u030A", "Y\u030A"},
    {0x1E9A, "A\u02BE", "A\u02BE"},
    {0x1F50, "\u03A5\u0313", "\u03A5\u0313"},
    {0x1F52, "\u03A5\u0313\u0300", "\u03A5\u0313\u0300"},
    {0x1F54, "\u03A5\u0313\u0301", "\u03A5\u0313\u0301"},
    {0x1F56, "\u03A5\u0313\u0342", "\u03A5\u0313\u0342"},
    {0x1F80, "\u1F08\u0399", "\u1F88"},
    {0x1F81, "\u1F09\u0399", "\u1F89"},
    {0x1F82, "\u1F0A\u0399", "\u1F8A"},
    {0x1F83, "\u1F0B\u0399", "\u1F8B"},
    {0x1F84, "\u1F0C\u0399", "\u1F8C"},
    {0x1F85, "\u1F0D\u0399", "\u1F8D"},
    {0x1F86, "\u1F0E\u0399", "\u1F8E"},
    {0x1F87, "\u1F0F\u0399", "\u1F8F"},
    {0x1F88, "\u1F08\u0399", "\u1F88"},
    {0x1F89, "\u1F09\u0399", "\u1F89"},
    {0x1F8A, "\u1F0A\u0399", "\u1F8A"},
    {0x1F8B, "\u1F0B\u0399", "\u1F8B"},
    {0x1F8C, "\u1F0C\u0399", "\u1F8C"},
    {0x1F8D, "\u1F0D\u0399", "\u1F8D"},
    {0x1F8E, "\u1F0E\u0399", "\u1F8E"},
    {0x1F8F, "\u1F0F\u0399", "\u1F8F"},
    {0x1F90, "\u1F28\u0399", "\u1F98"},
    {0x1F91, "\u1F29\u0399", "\u1F99"},
    {0x1F92, "\u1F2A\u0399", "\u1F9A"},
    {0x1F93, "\u1F2B\u0399", "\u1F9B"},
    {0x1F94, "\u1F2C\u0399", "\u1F9C"},
    {0x1F95, "\u1F2D\u0399", "\u1F9D"},
    {0x1F96, "\u1F2E\u0399", "\u1F9E"},
    {0x1F97, "\u1F2F\u0399", "\u1F9F"},
    {0x1F98, "\u1F28\u0399", "\u1F98"},
    {0x1F99, "\u1F29\u0399", "\u1F99"},
    {0x1F9A, "\u1F2A\u0399", "\u1F9A"},
    {0x1F9B, "\u1F2B\u0399", "\u1F9B"},
    {0x1F9C, "\u1F2C\u0399", "\u1F9C"},
    {0x1F9D, "\u1F2D\u0399", "\u1F9D"},
    {0x1F9E, "\u1F2E\u0399", "\u1F9E"},
    {0x1F9F, "\u1F2F\u0399", "\u1F9F"},
    {0x1FA0, "\u1F68\u0399", "\u1FA8"},
    {0x1FA1, "\u1F69\u0399", "\u1FA9"},
    {0x1FA2, "\u1F6A\u0399", "\u1FAA"},
    {0x1FA3, "\u1F6B\u0399", "\u1FAB"},
    {0x1FA4, "\u1F6C\u0399", "\u1FAC"},
    {0x1FA5, "\u1F6D\u0399", "\u1FAD"},
    {0x1FA6, "\u1F6E\u0399", "\u1FAE"},
    {0x1FA7, "\u1F6F\u0399", "\u1FAF"},
    {0x1FA8, "\u1F68\u0399", "\u1FA8"},
    {0x1FA9, "\u1F69\u0399", "\u1FA9"},
    {0x1FAA, "\u1F6A\u0399", "\u1FAA"},
    {0x1FAB, "\u1F6B\u0399", "\u1FAB"},
    {0x1FAC, "\u1F6C\u0399", "\u1FAC"},
    {0x1FAD, "\u1F6D\u0399", "\u1FAD"},
    {0x1FAE, "\u1F6E\u0399", "\u1FAE"},
    {0x1FAF, "\u1F6F\u0399", "\u1FAF"},
    {0x1FB2, "\u1FBA\u0399", "\u1FBA\u0345"},
    {0x1FB3, "\u0391\u0399", "\u1FBC"},
    {0x1FB4, "\u0386\u0399", "\u0386\u0345"},
    {0x1FB6, "\u0391\u0342", "\u0391\u0342"},
    {0x1FB7, "\u0391\u0342\u0399", "\u0391\u0342\u0345"},
    {0x1FBC, "\u0391\u0399", "\u1FBC"},
    {0x1FC2, "\u1FCA\u0399", "\u1FCA\u0345"},
    {0x1FC3, "\u0397\u0399", "\u1FCC"},
    {0x1FC4, "\u0389\u0399", "\u0389\u0345"},
    {0x1FC6, "\u0397\u0342", "\u0397\u0342"},
    {0x1FC7, "\u0397\u0342\u0399", "\u0397\u0342\u0345"},
    {0x1FCC, "\u0397\u0399", "\u1FCC"},
    {0x1FD2, "\u0399\u0308\u0300", "\u0399\u0308\u0300"},
    {0x1FD3, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x1FD6, "\u0399\u0342", "\u0399\u0342"},
    {0x1FD7, "\u0399\u0308\u0342", "\u0399\u0308\u0342"},
    {0x1FE2, "\u03A5\u0308\u0300", "\u03A5\u0308\u0300"},
    {0x1FE3, "\u03A5\u0308\u0301", "\u03A5\u0308\u0301"},
    {0x1FE4, "\u03A1\u0313", "\u03A1\u0313"},
    {0x1FE6, "\u03A5\u0342", "\u03A5\u0342"},
    {0x1FE7, "\u03A5\u0308\u0342", "\u03A5\u0308\u0342"},
    {0x1FF2, "\u1FFA\u0399", "\u1FFA\u0345"},
    {0x1FF3, "\u03A9\u0399", "\u1FFC"},
    {0x1FF4, "\u038F\u0399", "\u038F\u0345"},
    {0x1FF6, "\u03A9\u0342", "\u03A9\u0342"},
    {0x1FF7, "\u03A9\u0342\u0399", "\u03A9\u0342\u0345"},
    {0x1FFC, "\u03A9\u0399", "\u1FFC"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
    {0xFB13, "\u0544\u0546", "\u0544\u0576"},
    {0xFB14, "\u0544\u0535", "\u0544\u0565"},
    {0xFB15, "\u0544\u053B", "\u0544\u056B"},
    {0xFB16, "\u054E\u0546", "\u054E\u0576"},
    {0xFB17, "\u0544\u053D", "\u0544\u056D"},
}};

enum class Mapping { upper, title, lower, folded };

utf8proc_int32_t code(char32_t character) { return static_cast<utf8proc_int32_t>(character); }

utf8proc_category_t category(char32_t character) { return utf8proc_category(code(character)); }

bool begins_jinja_word(char32_t before) {
  return is_space(before) || before == U'-' || before == U'(' || before == U'{' || before == U'[' ||
         before == U'<';
}

bool is_cased(char32_t character) {
  return is_upper(character) || is_lower(character) || is_title(character);
}

// What stands within words without being a letter of them: marks, apostrophes and points.
bool is_case_ignorable(char32_t character) {
  constexpr std::u32string_view within_words = U"'.:^`\u00B7\u2018\u2019\u2024\u2027";
  const utf8proc_category_t found = category(character);
  return within_words.find(character) != std::u32string_view::npos ||
         found == UTF8PROC_CATEGORY_MN || found == UTF8PROC_CATEGORY_ME ||
         found == UTF8PROC_CATEGORY_CF || found == UTF8PROC_CATEGORY_LM ||
         found == UTF8PROC_CATEGORY_SK;
}

const SpecialLetter* find_special(char32_t character) {
  const auto found =
      std::ranges::lower_bound(special_letters, character, {}, &SpecialLetter::letter);
  return found != special_letters.end() && found->letter == character ? &*found : nullptr;
}

std::string folded(char32_t character) {
  utf8proc_int32_t characters[8] = {};
  int last_boundary = 0;
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(code(character), characters, 8, UTF8PROC_CASEFOLD, &last_boundary);
  std::string text;
  for (utf8proc_ssize_t i = 0; i < std::min<utf8proc_ssize_t>(count, 8); ++i) {
    append_character(text, static_cast<char32_t>(characters[i]));
  }
  return text;
}

std::string mapped(char32_t character, Mapping mapping) {
  if (mapping == Mapping::folded) return folded(character);
  std::string text;
  if (mapping == Mapping::lower) {
    append_character(text, static_cast<char32_t>(utf8proc_tolower(code(character))));
    if (character == U'\u0130') text = "i\u0307";
    return text;
  }
  if (const SpecialLetter* const special = find_special(character)) {
    return std::string(mapping == Mapping::upper ? special->upper : special->title);
  }
  append_character(
      text, static_cast<char32_t>(mapping == Mapping::upper ? utf8proc_toupper(code(character))
                                                            : utf8proc_totitle(code(character))));
  return text;
}

Mapping mapping_of(Letters letters, char32_t character, bool begins_word) {
  switch (letters) {
    case Letters::upper: return Mapping::upper;
    case Letters::lower: return Mapping::lower;
    case Letters::folded: return Mapping::folded;
    case Letters::swapped: return is_lower(character) ? Mapping::upper : Mapping::lower;
    case Letters::jinja_title: return begins_word ? Mapping::upper : Mapping::lower;
    case Letters::capitalized:
    case Letters::python_title: break;
  }
  return begins_word ? Mapping::title : Mapping::lower;
}

// Whether the sigma at `position` ends a word, where its lower case is another letter. Marks do not
// count; `follows_letter` says what stands before it.
bool is_final_sigma(std::string_view bytes, std::size_t position, bool follows_letter) {
  if (!follows_letter) return false;
  constexpr std::size_t max_marks = 64;  // nothing written has more, and the search stays short
  std::size_t i = position + character_size(bytes, position);
  for (std::size_t marks = 0; i < bytes.size() && marks < max_marks; ++marks) {
    const char32_t next = character_at(bytes, i);
    if (!is_case_ignorable(next)) return !is_cased(next);
    i += character_size(bytes, i);
  }
  return true;
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

Text replace(const Text& text, std::string_view old, const Text& replacement,
             std::size_t max_count) {
  const std::string_view bytes = text.bytes();
  Text result;
  std::size_t position = 0;
  for (std::size_t done = 0; done < max_count; ++done) {
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

Text change_case(const Text& text, Letters letters) {
  const std::string_view bytes = text.bytes();
  Text result;
  bool begins_word = true;
  bool follows_letter = false;  // marks aside
  for (std::size_t i = 0; i < bytes.size(); i += character_size(bytes, i)) {
    const std::size_t size = character_size(bytes, i);
    const char32_t character = character_at(bytes, i);
    const bool valid = size > 1 || static_cast<unsigned char>(bytes[i]) < 0x80;
    const Mapping mapping = mapping_of(letters, character, begins_word);
    std::string changed = valid ? mapped(character, mapping) : std::string();
    if (mapping == Mapping::lower && character == U'\u03A3' &&
        is_final_sigma(bytes, i, follows_letter)) {
      changed = "\u03C2";
    }
    if (!valid) {
      result.append(text, i, size);
    } else {
      result.append(changed, text.origin(i));
    }
    if (!is_case_ignorable(character)) follows_letter = is_cased(character);
    begins_word = (letters == Letters::python_title && !is_cased(character)) ||
                  (letters == Letters::jinja_title && begins_jinja_word(character));
  }
  return text.is_markup() ? result.as_markup() : result;
}

bool is_letter(char32_t character) {
  const utf8proc_category_t found = category(character);
  return found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t character) { return category(character) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t c) {
  // Digits in circles and above or below the line, which form no numbers.
  const bool is_formatted = c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0x1369 && c <= 0x1371) ||
                            c == 0x19DA || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
                            (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) ||
                            (c >= 0x2474 && c <= 0x247C) || (c >= 0x2488 && c <= 0x2490) ||
                            c == 0x24EA || (c >= 0x24F5 && c <= 0x24FD) || c == 0x24FF ||
                            (c >= 0x2776 && c <= 0x277E) || (c >= 0x2780 && c <= 0x2788) ||
                            (c >= 0x278A && c <= 0x2792) || (c >= 0x1F100 && c <= 0x1F10A);
  return is_decimal(c) || is_formatted;
}

bool is_numeric(char32_t c) {
  constexpr std::u32string_view ideographs =
      U"\u3007\u4E00\u4E8C\u4E09\u56DB\u4E94\u516D\u4E03\u516B\u4E5D\u5341\u767E\u5343\u4E07"
      U"\u5104";
  const utf8proc_category_t found = category(c);
  return found == UTF8PROC_CATEGORY_ND || found == UTF8PROC_CATEGORY_NL ||
         found == UTF8PROC_CATEGORY_NO || ideographs.find(c) != std::u32string_view::npos;
}

bool is_upper(char32_t character) { return category(character) == UTF8PROC_CATEGORY_LU; }

bool is_lower(char32_t character) { return category(character) == UTF8PROC_CATEGORY_LL; }

bool is_title(char32_t character) { return category(character) == UTF8PROC_CATEGORY_LT; }

bool is_printable(char32_t character) {
  const utf8proc_category_t found = category(character);
  const bool is_separator = found >= UTF8PROC_CATEGORY_ZS && found <= UTF8PROC_CATEGORY_ZP;
  const bool is_other = found == UTF8PROC_CATEGORY_CN || found >= UTF8PROC_CATEGORY_CC;
  return character == U' ' || (!is_separator && !is_other);
}

}  // namespace heed::chat
