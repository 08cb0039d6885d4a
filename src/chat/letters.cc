// Letters of all scripts, as Python has them.
#include <utf8proc.h>

#include <algorithm>

#include "chat/special_letters.h"
#include "chat/text.h"

namespace heed::chat {
namespace {

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
  constexpr std::size_t most_marks = 64;  // nothing written has more, and the search stays short
  std::size_t i = position + character_size(bytes, position);
  for (std::size_t marks = 0; i < bytes.size() && marks < most_marks; ++marks) {
    const char32_t next = character_at(bytes, i);
    if (!is_case_ignorable(next)) return !is_cased(next);
    i += character_size(bytes, i);
  }
  return true;
}

}  // namespace

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
