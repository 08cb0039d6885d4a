// Methods of strings that strip and change characters, ask for their kinds, or fill a width.
#include <array>
#include <utility>

#include "chat/methods.h"
#include "chat/padding.h"

namespace heed::chat {
namespace {

template <Side side>
Value strip_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "strip", given, {"chars"});
  const Text* const characters = parameters.optional_text(0);
  runtime.count_read(self.text()->size() + (characters == nullptr ? 0 : characters->size()));
  return runtime.text(
      strip(*self.text(), side,
            characters == nullptr ? std::nullopt : std::optional(characters->bytes())));
}

template <Letters letters>
Value case_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "a method of case", given, {});
  runtime.count_read(self.text()->size());
  return runtime.text(change_case(*self.text(), letters));
}

// The characters of a text, one after the other, until one ends the loop by returning false.
template <class Visit>
bool all_of_characters(std::string_view bytes, Visit visit) {
  for (std::size_t i = 0; i < bytes.size(); i += character_size(bytes, i)) {
    if (!visit(character_at(bytes, i))) return false;
  }
  return true;
}

std::string_view examined(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "a method of strings", given, {});
  runtime.count_read(self.text()->size());
  return self.text()->bytes();
}

template <bool (*holds)(char32_t)>
Value all_characters(Runtime& runtime, const Value& self, const Arguments& given) {
  const std::string_view bytes = examined(runtime, self, given);
  return !bytes.empty() && all_of_characters(bytes, holds);
}

bool is_alphanumeric(char32_t c) { return is_letter(c) || is_digit(c) || is_numeric(c); }
bool is_ascii(char32_t c) { return c < 0x80; }

// True of an empty string, too.
template <bool (*holds)(char32_t)>
Value no_other_characters(Runtime& runtime, const Value& self, const Arguments& given) {
  return all_of_characters(examined(runtime, self, given), holds);
}

// Has letters, all of that case.
template <bool (*has_case)(char32_t), bool (*has_other_case)(char32_t)>
Value all_letters(Runtime& runtime, const Value& self, const Arguments& given) {
  bool found = false;
  const bool no_other = all_of_characters(examined(runtime, self, given), [&](char32_t c) {
    found = found || has_case(c);
    return !has_other_case(c) && !is_title(c);
  });
  return found && no_other;
}

// Upper case begins words, and lower case goes on with them.
Value is_title_method(Runtime& runtime, const Value& self, const Arguments& given) {
  bool found = false;
  bool in_word = false;
  const bool holds = all_of_characters(examined(runtime, self, given), [&](char32_t c) {
    const bool begins = is_upper(c) || is_title(c);
    if ((begins && in_word) || (is_lower(c) && !in_word)) return false;
    in_word = begins || is_lower(c);
    found = found || in_word;
    return true;
  });
  return holds && found;
}

Value is_identifier_method(Runtime& runtime, const Value& self, const Arguments& given) {
  bool first = true;
  const std::string_view bytes = examined(runtime, self, given);
  const bool holds = all_of_characters(bytes, [&](char32_t c) {
    const bool begins = std::exchange(first, false);
    return c == U'_' || is_letter(c) || (!begins && is_decimal(c));
  });
  return holds && !bytes.empty();
}

template <Side filled>
Value pad_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "a method of width", given, {"width", "fillchar"});
  parameters.at(0);
  const Text fill = parameters.find(1) == nullptr ? Text(" ") : parameters.text(1);
  return runtime.text(padded(runtime, *self.text(),
                             {.width = parameters.integer(0, 0), .filled = filled, .fill = fill}));
}

Value zfill_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "zfill", given, {"width"});
  parameters.at(0);
  const Text& text = *self.text();
  const bool has_sign = text.bytes().starts_with('-') || text.bytes().starts_with('+');
  const std::size_t sign = has_sign ? 1 : 0;
  Text result = text.part(0, sign);
  result.append(padded(runtime, text.part(sign),
                       {.width = parameters.integer(0, 0) - static_cast<std::int64_t>(sign),
                        .filled = Side::left,
                        .fill = Text("0")}));
  return runtime.text(std::move(result));
}

Value expandtabs_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "expandtabs", given, {"tabsize"});
  const std::int64_t size = parameters.integer(0, 8);
  const Text& text = *self.text();
  runtime.count_read(text.size());
  Text result;
  std::int64_t column = 0;
  for (std::size_t i = 0; i < text.size(); i += character_size(text.bytes(), i)) {
    const char c = text.bytes()[i];
    if (c == '\t') {
      const std::int64_t spaces = size > 0 ? size - column % size : 0;
      runtime.require_text_size(result.size() + static_cast<std::size_t>(spaces));
      result.append(std::string(static_cast<std::size_t>(spaces), ' '), text.origin(i));
      column += spaces;
      continue;
    }
    result.append(text, i, character_size(text.bytes(), i));
    column = c == '\n' || c == '\r' ? 0 : column + 1;
  }
  return runtime.text(std::move(result));
}

constexpr std::array methods_of_letters = {
    Method{"strip", strip_method<Side::both>},
    Method{"lstrip", strip_method<Side::left>},
    Method{"rstrip", strip_method<Side::right>},
    Method{"upper", case_method<Letters::upper>},
    Method{"lower", case_method<Letters::lower>},
    Method{"swapcase", case_method<Letters::swapped>},
    Method{"casefold", case_method<Letters::folded>},
    Method{"capitalize", case_method<Letters::capitalized>},
    Method{"title", case_method<Letters::python_title>},
    Method{"isspace", all_characters<is_space>},
    Method{"isalpha", all_characters<is_letter>},
    Method{"isdigit", all_characters<is_digit>},
    Method{"isdecimal", all_characters<is_decimal>},
    Method{"isnumeric", all_characters<is_numeric>},
    Method{"isalnum", all_characters<is_alphanumeric>},
    Method{"isascii", no_other_characters<is_ascii>},
    Method{"isprintable", no_other_characters<is_printable>},
    Method{"isupper", all_letters<is_upper, is_lower>},
    Method{"islower", all_letters<is_lower, is_upper>},
    Method{"istitle", is_title_method},
    Method{"isidentifier", is_identifier_method},
    Method{"center", pad_method<Side::both>},
    Method{"ljust", pad_method<Side::right>},
    Method{"rjust", pad_method<Side::left>},
    Method{"zfill", zfill_method},
    Method{"expandtabs", expandtabs_method},
};

}  // namespace

std::span<const Method> letter_methods() { return methods_of_letters; }

}  // namespace heed::chat
