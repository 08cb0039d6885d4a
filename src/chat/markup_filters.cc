// Filters that write HTML and addresses, and those of words and widths.
#include <array>

#include "chat/filters.h"
#include "chat/operators.h"
#include "chat/padding.h"
#include "chat/print.h"

namespace heed::chat {
namespace {

Value escape_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "escape", given, {});
  return runtime.text(html_escaped(runtime, to_text(runtime, input)));
}

// Also of what is HTML already.
Value forceescape_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "forceescape", given, {});
  const Text text = to_text(runtime, input);
  Text plain;
  plain.append(text);
  return runtime.text(html_escaped(runtime, plain));
}

Value safe_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "safe", given, {});
  return runtime.text(to_text(runtime, input).as_markup());
}

enum class Quoting { path, query };

// Bytes that an address does not have as %XX; in a query, a space as +.
void append_quoted(Runtime& runtime, Text& result, const Text& text, Quoting quoting) {
  runtime.count_read(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text.bytes()[i];
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const bool plain = alphanumeric || c == '_' || c == '.' || c == '-' || c == '~' ||
                       (c == '/' && quoting == Quoting::path);
    if (plain) {
      result.append(text, i, 1);
    } else if (c == ' ' && quoting == Quoting::query) {
      result.append("+", text.origin(i));
    } else {
      result.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)), text.origin(i));
    }
  }
  runtime.require_text_size(result.size());
}

Value urlencode_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "urlencode", given, {});
  Text result;
  const Dict* const dict = input.pointer<Dict>();
  if (dict == nullptr && input.pointer<List>() == nullptr) {
    append_quoted(runtime, result, to_text(runtime, input), Quoting::path);
    return runtime.text(std::move(result));
  }
  const auto append_pair = [&](const Value& key, const Value& value) {
    if (!result.empty()) result.append("&");
    append_quoted(runtime, result, to_text(runtime, key), Quoting::query);
    result.append("=");
    append_quoted(runtime, result, to_text(runtime, value), Quoting::query);
  };
  if (dict != nullptr) {
    for (const auto& [key, value] : dict->entries()) append_pair(key, value);
    return runtime.text(std::move(result));
  }
  for (const Value& element : elements_of(runtime, input)) {
    const std::vector<Value> pair = elements_of(runtime, element);
    if (pair.size() != 2) runtime.fail("'urlencode' needs a string, a dict or pairs");
    append_pair(pair[0], pair[1]);
  }
  return runtime.text(std::move(result));
}

Value center_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "center", given, {"width"});
  return runtime.text(
      padded(runtime, to_text(runtime, input), {.width = parameters.integer(0, 80)}));
}

bool is_word_character(char32_t c) {
  return c == U'_' || is_letter(c) || is_digit(c) || is_numeric(c);
}

Value wordcount_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "wordcount", given, {});
  const Text text = to_text(runtime, input);
  std::int64_t count = 0;
  bool in_word = false;
  for (std::size_t i = 0; i < text.size(); i += character_size(text.bytes(), i)) {
    const bool word = is_word_character(character_at(text.bytes(), i));
    if (word && !in_word) ++count;
    in_word = word;
  }
  return count;
}

// At most `length` characters, `end` among them, and whole words unless `killwords`; a text that is
// `leeway` longer stays.
Value truncate_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "truncate", given, {"length", "killwords", "end", "leeway"});
  const std::int64_t length = parameters.integer(0, 255);
  const Text end = parameters.find(2) == nullptr ? Text("...") : parameters.text(2);
  const Value* const given_leeway = parameters.find(3);
  const std::int64_t leeway =
      given_leeway == nullptr || given_leeway->is_none() ? 5 : parameters.integer(3, 5);
  if (input.is_undefined()) return input;
  const Text* const text = input.text();
  if (text == nullptr)
    runtime.fail("'truncate' needs a string, not a value of type {}", type_name(input));
  runtime.count_read(text->size() + end.size());
  const auto end_length = static_cast<std::int64_t>(character_count(end.bytes()));
  if (length < end_length || leeway < 0) {
    runtime.fail("'truncate' needs a length of at least {} and a leeway of at least 0", end_length);
  }
  const auto size = static_cast<std::int64_t>(character_count(text->bytes()));
  if (size <= length || size - length <= leeway) return input;
  std::size_t kept = offset_after(text->bytes(), 0, static_cast<std::size_t>(length - end_length));
  if (!parameters.flag(1, false)) {
    kept = std::min(kept, text->bytes().substr(0, kept).rfind(' '));
  }
  Text result = text->part(0, kept);
  result.append(end);
  return runtime.text(std::move(result));
}

constexpr std::array filters_of_markup = {
    Filter{"escape", escape_filter},           Filter{"e", escape_filter},
    Filter{"forceescape", forceescape_filter}, Filter{"safe", safe_filter},
    Filter{"urlencode", urlencode_filter},     Filter{"center", center_filter},
    Filter{"wordcount", wordcount_filter},     Filter{"truncate", truncate_filter},
};

}  // namespace

std::span<const Filter> markup_filters() { return filters_of_markup; }

}  // namespace heed::chat
