// Letters of all scripts. A character is mapped to one character: "ß" stays in upper case.
#include <utf8proc.h>

#include "chat/text.h"

namespace heed::chat {
namespace {

utf8proc_category_t category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

char32_t upper(char32_t character) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(character)));
}

char32_t lower(char32_t character) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character)));
}

bool begins_jinja_word(char32_t before) {
  return is_space(before) || before == U'-' || before == U'(' || before == U'{' || before == U'[' ||
         before == U'<';
}

bool is_cased(char32_t character) { return is_upper(character) || is_lower(character); }

}  // namespace

Text change_case(const Text& text, Letters letters) {
  const std::string_view bytes = text.bytes();
  Text result;
  bool begins_word = true;
  for (std::size_t i = 0; i < bytes.size(); i += character_size(bytes, i)) {
    const std::size_t size = character_size(bytes, i);
    const char32_t character = character_at(bytes, i);
    const bool raise = letters == Letters::upper || (letters != Letters::lower && begins_word);
    const char32_t changed = raise ? upper(character) : lower(character);
    if (changed == character) {  // also bytes that are not UTF-8
      result.append(text, i, size);
    } else {
      std::string mapped;
      append_character(mapped, changed);
      result.append(mapped, text.origin(i));
    }
    begins_word = (letters == Letters::python_title && !is_cased(character)) ||
                  (letters == Letters::jinja_title && begins_jinja_word(character));
  }
  return result;
}

bool is_letter(char32_t character) {
  const utf8proc_category_t found = category(character);
  return found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(char32_t character) { return category(character) == UTF8PROC_CATEGORY_ND; }

bool is_upper(char32_t character) {
  return category(character) == UTF8PROC_CATEGORY_LU || category(character) == UTF8PROC_CATEGORY_LT;
}

bool is_lower(char32_t character) { return category(character) == UTF8PROC_CATEGORY_LL; }

}  // namespace heed::chat
