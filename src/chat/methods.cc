// The methods of strings, lists and dictionaries: value.name(arguments).
#include <algorithm>
#include <array>

#include "chat/arithmetic.h"
#include "chat/built_in.h"
#include "chat/collections.h"
#include "chat/operators.h"

namespace heed::chat {
namespace {

// Where a method only reads a text.
constexpr std::size_t read_bytes_of_a_step = 256;

std::size_t most_of(std::int64_t count) {
  return count < 0 ? SIZE_MAX : static_cast<std::size_t>(count);
}

template <Side side>
Value strip_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "strip", given, {"chars"});
  const Text* const characters = parameters.optional_text(0);
  return runtime.text(
      strip(*self.text(), side,
            characters == nullptr ? std::nullopt : std::optional(characters->bytes())));
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

Value split_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "split", given, {"sep", "maxsplit"});
  const Text& text = *self.text();
  const std::size_t most = most_of(parameters.integer(1, -1));
  const Text* const separator = parameters.optional_text(0);
  runtime.count_bytes(text.size());
  if (separator == nullptr) return split_at_space(runtime, text, most);
  if (separator->empty()) runtime.fail("split() needs a separator that is not empty");
  List* const parts = runtime.new_list();
  std::size_t begin = 0;
  while (parts->items.size() < most) {
    const std::size_t found = text.bytes().find(separator->bytes(), begin);
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
  const Text& separator = parameters.text(0);
  const std::size_t most = most_of(parameters.integer(1, -1));
  runtime.count_bytes(text.size());
  if (separator.empty()) runtime.fail("rsplit() needs a separator that is not empty");
  List* const parts = runtime.new_list();
  std::size_t end = text.size();
  while (parts->items.size() < most && end >= separator.size()) {
    const std::size_t found = text.bytes().rfind(separator.bytes(), end - separator.size());
    if (found == std::string_view::npos) break;
    runtime.count_steps(1);
    const std::size_t begin = found + separator.size();
    parts->items.push_back(runtime.text(text.part(begin, end - begin)));
    end = found;
  }
  parts->items.push_back(runtime.text(text.part(0, end)));
  std::ranges::reverse(parts->items);
  return parts;
}

// For \n only: line breaks of other systems are rare in conversations.
Value splitlines_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "splitlines", given, {});
  const Text& text = *self.text();
  List* const lines = runtime.new_list();
  for (std::size_t begin = 0; begin < text.size();) {
    runtime.count_steps(1);
    const std::size_t end = std::min(text.bytes().find_first_of("\r\n", begin), text.size());
    lines->items.push_back(runtime.text(text.part(begin, end - begin)));
    const bool pair = text.bytes().substr(end).starts_with("\r\n");
    begin = end + (pair ? 2 : 1);
  }
  return lines;
}

// Whether one of the affixes, a string or a tuple of them, is at that end.
template <Side side>
Value affix_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, side == Side::left ? "startswith" : "endswith", given,
                              {"affix"});
  const std::string_view bytes = self.text()->bytes();
  const auto is_there = [&](const Value& affix) {
    if (affix.text() == nullptr) {
      runtime.fail("a string cannot begin or end with a value of type {}", type_name(affix));
    }
    runtime.count_steps(affix.text()->size() / read_bytes_of_a_step);
    return side == Side::left ? bytes.starts_with(affix.text()->bytes())
                              : bytes.ends_with(affix.text()->bytes());
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
  const bool found =
      side == Side::left ? text.bytes().starts_with(affix) : text.bytes().ends_with(affix);
  if (!found) return self;
  return runtime.text(text.part(side == Side::left ? affix.size() : 0, text.size() - affix.size()));
}

template <Letters letters>
Value case_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "a method of case", given, {});
  return runtime.text(change_case(*self.text(), letters));
}

Value replace_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "replace", given, {"old", "new", "count"});
  return replaced(runtime, *self.text(), parameters.text(0), parameters.text(1),
                  parameters.integer(2, -1));
}

template <Side side>
Value find_method_of_text(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "find", given, {"sub"});
  const std::string_view bytes = self.text()->bytes();
  runtime.count_steps(bytes.size() / read_bytes_of_a_step);
  const std::string_view wanted = parameters.text(0).bytes();
  const std::size_t found = side == Side::left ? bytes.find(wanted) : bytes.rfind(wanted);
  if (found == std::string_view::npos) return std::int64_t{-1};
  return static_cast<std::int64_t>(character_count(bytes.substr(0, found)));
}

Value count_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "count", given, {"value"});
  std::int64_t count = 0;
  if (const List* const list = self.pointer<List>()) {
    for (const Value& item : list->items) count += equal(runtime, item, parameters.at(0)) ? 1 : 0;
    return count;
  }
  const std::string_view bytes = self.text()->bytes();
  const std::string_view wanted = parameters.text(0).bytes();
  runtime.count_steps(bytes.size() / read_bytes_of_a_step);
  if (wanted.empty()) return static_cast<std::int64_t>(character_count(bytes) + 1);
  for (std::size_t i = bytes.find(wanted); i != std::string_view::npos;
       i = bytes.find(wanted, i + wanted.size())) {
    ++count;
  }
  return count;
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
    if (result.size() > runtime.limits().output_bytes) runtime.count_bytes(result.size());
  }
  return runtime.text(std::move(result));
}

Value format_method(Runtime& runtime, const Value& self, const Arguments& given) {
  return runtime.text(brace_format(runtime, *self.text(), given));
}

template <bool (*holds)(char32_t)>
Value all_characters(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "a method of strings", given, {});
  const std::string_view bytes = self.text()->bytes();
  runtime.count_steps(bytes.size() / read_bytes_of_a_step);
  for (std::size_t i = 0; i < bytes.size(); i += character_size(bytes, i)) {
    if (!holds(character_at(bytes, i))) return false;
  }
  return !bytes.empty();
}

Value append_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "append", given, {"object"});
  runtime.count_steps(1);
  self.pointer<List>()->items.push_back(parameters.at(0));
  return None{};
}

Value index_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "index", given, {"value"});
  const auto& items = self.pointer<List>()->items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (equal(runtime, items[i], parameters.at(0))) return static_cast<std::int64_t>(i);
  }
  runtime.fail("index(): the value is not in the list");
}

Value get_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "get", given, {"key", "default"});
  const Value* const found = self.pointer<Dict>()->find(parameters.at(0));
  if (found != nullptr) return *found;
  return parameters.find(1) == nullptr ? Value(None{}) : *parameters.find(1);
}

Value items_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "items", given, {});
  return pairs_of(runtime, *self.pointer<Dict>());
}

Value keys_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "keys", given, {});
  return runtime.new_list(elements_of(runtime, self));
}

Value values_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "values", given, {});
  std::vector<Value> values;
  for (const auto& entry : self.pointer<Dict>()->entries()) values.push_back(entry.second);
  return runtime.new_list(std::move(values));
}

constexpr std::array text_methods = {
    Method{"strip", strip_method<Side::both>},
    Method{"lstrip", strip_method<Side::left>},
    Method{"rstrip", strip_method<Side::right>},
    Method{"split", split_method},
    Method{"rsplit", rsplit_method},
    Method{"splitlines", splitlines_method},
    Method{"startswith", affix_method<Side::left>},
    Method{"endswith", affix_method<Side::right>},
    Method{"removeprefix", remove_affix_method<Side::left>},
    Method{"removesuffix", remove_affix_method<Side::right>},
    Method{"upper", case_method<Letters::upper>},
    Method{"lower", case_method<Letters::lower>},
    Method{"capitalize", case_method<Letters::capitalized>},
    Method{"title", case_method<Letters::python_title>},
    Method{"replace", replace_method},
    Method{"find", find_method_of_text<Side::left>},
    Method{"rfind", find_method_of_text<Side::right>},
    Method{"count", count_method},
    Method{"join", join_method},
    Method{"format", format_method},
    Method{"isspace", all_characters<is_space>},
    Method{"isalpha", all_characters<is_letter>},
    Method{"isdigit", all_characters<is_digit>},
};

constexpr std::array list_methods = {
    Method{"append", append_method},
    Method{"index", index_method},
    Method{"count", count_method},
};

constexpr std::array dict_methods = {
    Method{"get", get_method},
    Method{"items", items_method},
    Method{"keys", keys_method},
    Method{"values", values_method},
};

template <std::size_t size>
const Method* named(const std::array<Method, size>& methods, std::string_view name) {
  const auto found = std::ranges::find(methods, name, &Method::name);
  return found == methods.end() ? nullptr : &*found;
}

}  // namespace

const Method* find_method(const Value& value, std::string_view name) {
  if (value.text() != nullptr) return named(text_methods, name);
  if (value.pointer<Dict>() != nullptr) return named(dict_methods, name);
  if (const List* const list = value.pointer<List>()) {
    if (list->kind == ListKind::tuple && name == "append") return nullptr;
    return named(list_methods, name);
  }
  return nullptr;
}

}  // namespace heed::chat
