#include "scoring/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

namespace heed::scoring {
namespace {

constexpr char32_t first_invalid_byte = 0xDC00;  // a surrogate, which valid UTF-8 cannot encode

utf8proc_category_t category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

bool is_cased(char32_t character) {
  const utf8proc_category_t kind = category(character);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL ||
         kind == UTF8PROC_CATEGORY_LT;
}

// Unicode's Case_Ignorable: marks, modifiers, formats, and punctuation inside words.
bool is_ignored_by_case(char32_t character) {
  constexpr std::u32string_view inside_words =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  switch (category(character)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return inside_words.find(character) != std::u32string_view::npos;
  }
}

// A capital sigma has a form of its own at the end of a word: a letter before it, none after it.
bool ends_word(std::u32string_view text, std::size_t position) {
  const auto before =
      std::find_if_not(std::make_reverse_iterator(text.begin() + std::ptrdiff_t(position)),
                       text.rend(), is_ignored_by_case);
  if (before == text.rend() || !is_cased(*before)) return false;
  const auto after =
      std::find_if_not(text.begin() + std::ptrdiff_t(position) + 1, text.end(), is_ignored_by_case);
  return after == text.end() || !is_cased(*after);
}

}  // namespace

std::u32string to_characters(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + i);
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t size =
        utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - i), &character);
    characters.push_back(size > 0 ? static_cast<char32_t>(character)
                                  : first_invalid_byte + bytes[0]);
    i += size > 0 ? static_cast<std::size_t>(size) : 1;
  }
  return characters;
}

bool is_white_space(char32_t character) {
  if (character < 0x80) {
    return (character >= 0x09 && character <= 0x0D) || (character >= 0x1C && character <= 0x20);
  }
  return character == 0x85 || character == 0xA0 || character == 0x1680 ||
         (character >= 0x2000 && character <= 0x200A) || character == 0x2028 ||
         character == 0x2029 || character == 0x202F || character == 0x205F || character == 0x3000;
}

std::u32string lower_case(std::u32string_view text) {
  constexpr char32_t capital_sigma = U'\u03A3', small_sigma = U'\u03C3', final_sigma = U'\u03C2';
  constexpr char32_t capital_dotted_i = U'\u0130';
  std::u32string lower;
  lower.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == capital_sigma) {
      lower += ends_word(text, i) ? final_sigma : small_sigma;
    } else if (text[i] == capital_dotted_i) {
      lower += U"i\u0307";
    } else {
      lower += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(text[i])));
    }
  }
  return lower;
}

std::u32string without_trailing_space(std::u32string_view text) {
  while (!text.empty() && is_white_space(text.back())) text.remove_suffix(1);
  return std::u32string(text);
}

std::u32string without_space(std::u32string_view text) {
  std::u32string rest;
  rest.reserve(text.size());
  std::ranges::remove_copy_if(text, std::back_inserter(rest), is_white_space);
  return rest;
}

std::vector<std::u32string> split_at_space(std::u32string_view text) {
  std::vector<std::u32string> words;
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if_not(begin, text.end(), is_white_space);
    const auto end = std::find_if(begin, text.end(), is_white_space);
    if (begin != end) words.emplace_back(begin, end);
    begin = end;
  }
  return words;
}

}  // namespace heed::scoring
