// Methods of strings, as Python has them.
#include <algorithm>
#include <array>
#include <utility>

#include "chat/built_in.h"
#include "chat/operators.h"
#include "chat/value.h"

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

std::size_t most_of(std::int64_t count) {
  return count < 0 ? SIZE_MAX : static_cast<std::size_t>(count);
}

// The part of a text that a search looks at: bytes [begin, end), which begin at a character.
struct SearchRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int64_t first_character = 0;
  bool is_valid = true;  // false: it begins after its end, and holds not even an empty string
};

// By the parameters `start` and `end` from `index` on, as slices have them.
SearchRange search_range(Runtime& runtime, const Text& text, const Parameters& parameters,
                         std::size_t index) {
  const auto given = [&](std::size_t i) {
    const Value* const value = parameters.find(i);
    return value != nullptr && !value->is_none();
  };
  runtime.count_read(text.size());
  if (!given(index) && !given(index + 1)) return {0, text.size()};
  const auto length = static_cast<std::int64_t>(character_count(text.bytes()));
  const auto bound = [&](std::size_t i, std::int64_t otherwise) {
    if (!given(i)) return otherwise;
    const std::int64_t position = parameters.integer(i, 0);
    return position < 0 ? std::max<std::int64_t>(0, position + length) : position;
  };
  const std::int64_t start = bound(index, 0);
  const std::int64_t end = std::min(bound(index + 1, length), length);
  if (start > end) return {0, 0, 0, false};
  SearchRange range{0, 0, start};
  for (std::int64_t i = 0; i < end; ++i) {
    range.end += character_size(text.bytes(), range.end);
    if (i + 1 == start) range.begin = range.end;
  }
  return range;
}

// The number of the character at which a search finds `wanted`, or -1.
template <Side side>
std::int64_t position_of(Runtime& runtime, const Value& self, const Parameters& parameters) {
  const Text& text = *self.text();
  const std::string_view wanted = parameters.text(0).bytes();
  const SearchRange range = search_range(runtime, text, parameters, 1);
  if (!range.is_valid) return -1;
  runtime.count_read(text.size() + wanted.size());
  const std::string_view bytes = text.bytes().substr(range.begin, range.end - range.begin);
  const std::size_t found =
      side == Side::left ? find_text(bytes, wanted) : find_last_text(bytes, wanted);
  if (found == std::string_view::npos) return -1;
  return range.first_character + static_cast<std::int64_t>(character_count(bytes.substr(0, found)));
}

template <Side side>
Value find_method_of_text(Runtime& runtime, const Value& self, const Arguments& given) {
  return position_of<side>(runtime, self,
                           Parameters(runtime, "find", given, {"sub", "start", "end"}));
}

template <Side side>
Value index_method_of_text(Runtime& runtime, const Value& self, const Arguments& given) {
  const std::int64_t position = position_of<side>(
      runtime, self, Parameters(runtime, "index", given, {"sub", "start", "end"}));
  if (position < 0) runtime.fail("index(): there is no such part of the string");
  return position;
}

Value count_method_of_text(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "count", given, {"sub", "start", "end"});
  const SearchRange range = search_range(runtime, *self.text(), parameters, 1);
  if (!range.is_valid) return std::int64_t{0};
  const std::string_view bytes = self.text()->bytes().substr(range.begin, range.end - range.begin);
  const std::string_view wanted = parameters.text(0).bytes();
  runtime.count_read(bytes.size() + wanted.size());
  if (wanted.empty()) return static_cast<std::int64_t>(character_count(bytes) + 1);
  std::int64_t count = 0;
  for (std::size_t i = find_text(bytes, wanted); i != std::string_view::npos;
       i = find_text(bytes, wanted, i + wanted.size())) {
    ++count;
  }
  return count;
}

// Whether one of the affixes, a string or a tuple of them, is at that end.
template <Side side>
Value affix_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, side == Side::left ? "startswith" : "endswith", given,
                              {"affix", "start", "end"});
  const SearchRange range = search_range(runtime, *self.text(), parameters, 1);
  const std::string_view bytes = self.text()->bytes().substr(range.begin, range.end - range.begin);
  const auto is_there = [&](const Value& affix) {
    if (affix.text() == nullptr) {
      runtime.fail("a string cannot begin or end with a value of type {}", type_name(affix));
    }
    runtime.count_read(affix.text()->size());
    const std::string_view wanted = affix.text()->bytes();
    return range.is_valid &&
           (side == Side::left ? bytes.starts_with(wanted) : bytes.ends_with(wanted));
  };
  const List* const several = parameters.at(0).pointer<List>();
  if (several == nullptr || several->kind != ListKind::tuple) return is_there(parameters.at(0));
  runtime.count_steps(several->items.size());
  return std::ranges::any_of(several->items, is_there);
}

template <Side side>
Value remove_affix_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "removeprefix", given, {"affix"});
  const Text& text = *self.text();
  const std::string_view affix = parameters.text(0).bytes();
  runtime.count_read(affix.size());
  const bool found =
      side == Side::left ? text.bytes().starts_with(affix) : text.bytes().ends_with(affix);
  if (!found) return self;
  return runtime.text(text.part(side == Side::left ? affix.size() : 0, text.size() - affix.size()));
}

Value replace_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "replace", given, {"old", "new", "count"});
  return replaced(runtime, *self.text(), parameters.text(0), parameters.text(1),
                  parameters.integer(2, -1));
}

// The words between white space; after `most` of them the rest is one.
List* split_at_space(Runtime& runtime, const Text& text, std::size_t most) {
  List* const parts = runtime.new_list();
  const std::string_view bytes = text.bytes();
  std::size_t position = leading_space(bytes);
  while (position < bytes.size()) {
    std::size_t end = position;
    if (parts->items.size() == most) {
      end = bytes.size();
    } else {
      while (end < bytes.size() && !is_space(character_at(bytes, end))) {
        end += character_size(bytes, end);
      }
    }
    runtime.count_steps(1);
    parts->items.push_back(runtime.text(text.part(position, end - position)));
    position = end + leading_space(bytes.substr(end));
  }
  return parts;
}

// The same from the end on.
List* split_at_space_from_end(Runtime& runtime, const Text& text, std::size_t most) {
  List* const parts = runtime.new_list();
  const std::string_view bytes = text.bytes();
  std::vector<std::pair<std::size_t, std::size_t>> words;  // begin and end
  for (std::size_t i = leading_space(bytes); i < bytes.size();) {
    std::size_t end = i;
    while (end < bytes.size() && !is_space(character_at(bytes, end))) {
      end += character_size(bytes, end);
    }
    runtime.count_steps(1);
    words.emplace_back(i, end);
    i = end + leading_space(bytes.substr(end));
  }
  const std::size_t joined = words.size() > most ? words.size() - most : 0;
  if (joined > 0) parts->items.push_back(runtime.text(text.part(0, words[joined - 1].second)));
  for (std::size_t i = joined; i < words.size(); ++i) {
    parts->items.push_back(
        runtime.text(text.part(words[i].first, words[i].second - words[i].first)));
  }
  return parts;
}

Value split_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "split", given, {"sep", "maxsplit"});
  const Text& text = *self.text();
  const std::size_t most = most_of(parameters.integer(1, -1));
  const Text* const separator = parameters.optional_text(0);
  runtime.count_read(text.size());
  if (separator == nullptr) return split_at_space(runtime, text, most);
  if (separator->empty()) runtime.fail("split() needs a separator that is not empty");
  runtime.count_read(separator->size());
  List* const parts = runtime.new_list();
  std::size_t begin = 0;
  while (parts->items.size() < most) {
    const std::size_t found = find_text(text.bytes(), separator->bytes(), begin);
    if (found == std::string_view::npos) break;
    runtime.count_steps(1);
    parts->items.push_back(runtime.text(text.part(begin, found - begin)));
    begin = found + separator->size();
  }
  parts->items.push_back(runtime.text(text.part(begin)));
  return parts;
}

Value rsplit_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "rsplit", given, {"sep", "maxsplit"});
  const Text& text = *self.text();
  const Text* const separator = parameters.optional_text(0);
  const std::size_t most = most_of(parameters.integer(1, -1));
  runtime.count_read(text.size());
  if (separator == nullptr) return split_at_space_from_end(runtime, text, most);
  if (separator->empty()) runtime.fail("rsplit() needs a separator that is not empty");
  runtime.count_read(text.size() + separator->size());
  const std::string backwards(text.bytes().rbegin(), text.bytes().rend());
  const std::string wanted(separator->bytes().rbegin(), separator->bytes().rend());
  List* const parts = runtime.new_list();
  std::size_t begin = 0;  // in `backwards`
  while (parts->items.size() < most) {
    const std::size_t found = find_text(backwards, wanted, begin);
    if (found == std::string_view::npos) break;
    runtime.count_steps(1);
    parts->items.push_back(runtime.text(text.part(text.size() - found, found - begin)));
    begin = found + wanted.size();
  }
  parts->items.push_back(runtime.text(text.part(0, text.size() - begin)));
  std::ranges::reverse(parts->items);
  return parts;
}

Value splitlines_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "splitlines", given, {"keepends"});
  const bool keeps = parameters.flag(0, false);
  const Text& text = *self.text();
  runtime.count_read(text.size());
  List* const lines = runtime.new_list();
  Line line;
  for (std::size_t begin = 0; begin < text.size(); begin = line.next) {
    runtime.count_steps(1);
    line = line_at(text.bytes(), begin);
    const std::size_t end = keeps ? line.next : line.end;
    lines->items.push_back(runtime.text(text.part(line.begin, end - line.begin)));
  }
  return lines;
}

// What stands before a separator, the separator, and what stands after it.
template <Side side>
Value partition_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "partition", given, {"sep"});
  const Text& text = *self.text();
  const Text& separator = parameters.text(0);
  if (separator.empty()) runtime.fail("partition() needs a separator that is not empty");
  runtime.count_read(text.size() + separator.size());
  const std::size_t found = side == Side::left ? find_text(text.bytes(), separator.bytes())
                                               : find_last_text(text.bytes(), separator.bytes());
  std::vector<Value> parts;
  if (found == std::string_view::npos) {
    parts = {runtime.text(""), runtime.text("")};
    parts.insert(side == Side::left ? parts.begin() : parts.end(), self);
  } else {
    const std::size_t end = found + separator.size();
    parts = {runtime.text(text.part(0, found)), runtime.text(text.part(found, separator.size())),
             runtime.text(text.part(end))};
  }
  return runtime.new_list(std::move(parts), ListKind::tuple);
}

Value join_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "join", given, {"iterable"});
  Text result;
  bool first = true;
  for (const Value& item : elements_of(runtime, parameters.at(0))) {
    if (item.text() == nullptr) {
      runtime.fail("join() joins strings, not a value of type {}", type_name(item));
    }
    if (!first) result.append(*self.text());
    result.append(*item.text());
    first = false;
    runtime.require_text_size(result.size());
  }
  return runtime.text(std::move(result));
}

Value format_method(Runtime& runtime, const Value& self, const Arguments& given) {
  return runtime.text(brace_format(runtime, *self.text(), given));
}

Value format_map_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "format_map", given, {"mapping"});
  const Dict* const dict = parameters.at(0).pointer<Dict>();
  if (dict == nullptr) runtime.fail("format_map() needs a dict");
  Arguments names;
  runtime.count_steps(dict->entries().size());
  for (const auto& [key, value] : dict->entries()) {
    if (key.text() != nullptr) names.named.emplace_back(key.text()->bytes(), value);
  }
  return runtime.text(brace_format(runtime, *self.text(), names));
}

constexpr std::array methods_of_text = {
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
    Method{"split", split_method},
    Method{"rsplit", rsplit_method},
    Method{"splitlines", splitlines_method},
    Method{"partition", partition_method<Side::left>},
    Method{"rpartition", partition_method<Side::right>},
    Method{"startswith", affix_method<Side::left>},
    Method{"endswith", affix_method<Side::right>},
    Method{"removeprefix", remove_affix_method<Side::left>},
    Method{"removesuffix", remove_affix_method<Side::right>},
    Method{"replace", replace_method},
    Method{"find", find_method_of_text<Side::left>},
    Method{"rfind", find_method_of_text<Side::right>},
    Method{"index", index_method_of_text<Side::left>},
    Method{"rindex", index_method_of_text<Side::right>},
    Method{"count", count_method_of_text},
    Method{"join", join_method},
    Method{"format", format_method},
    Method{"format_map", format_map_method},
};

}  // namespace

std::span<const Method> text_methods() { return methods_of_text; }

}  // namespace heed::chat
