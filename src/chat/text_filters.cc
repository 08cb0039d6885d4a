// Filters of strings and numbers.
#include <array>
#include <charconv>
#include <cmath>

#include "chat/built_in.h"
#include "chat/operators.h"
#include "chat/value.h"

namespace heed::chat {
namespace {

constexpr std::int64_t widest_indent = 1000;

Value trim_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "trim", given, {"chars"});
  const Text* const characters = parameters.optional_text(0);
  if (characters != nullptr) runtime.count_read(characters->size());
  return runtime.text(
      strip(to_text(runtime, input), Side::both,
            characters == nullptr ? std::nullopt : std::optional(characters->bytes())));
}

template <Letters letters>
Value case_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "a filter of case", given, {});
  return runtime.text(change_case(to_text(runtime, input), letters));
}

Value string_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "string", given, {});
  if (input.text() != nullptr) return input;
  return runtime.text(to_text(runtime, input));
}

Value replace_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "replace", given, {"old", "new", "count"});
  const bool all = parameters.find(2) == nullptr || parameters.find(2)->is_none();
  return replaced(runtime, to_text(runtime, input), to_text(runtime, parameters.at(0)),
                  to_text(runtime, parameters.at(1)), all ? -1 : parameters.integer(2, -1));
}

std::string spaces_of(Runtime& runtime, const Value& width) {
  if (const Text* const text = width.text()) return std::string(text->bytes());
  if (!width.is_integer() || width.integer() > widest_indent) {
    runtime.fail("an indent must be a string or a number up to {}", widest_indent);
  }
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, width.integer())), ' ');
}

Value indent_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "indent", given, {"width", "first", "blank"});
  const std::string spaces =
      spaces_of(runtime, parameters.find(0) == nullptr ? Value(std::int64_t{4}) : parameters.at(0));
  if (input.text() == nullptr) {
    runtime.fail("'indent' needs a string, not a value of type {}", type_name(input));
  }
  Text text = *input.text();
  runtime.count_read(text.size());
  text.append("\n");  // a line break at the end begins a last, empty line
  const bool blank_lines = parameters.flag(2, false);
  Text result;
  if (parameters.flag(1, false)) result.append(spaces);
  Line line;
  for (std::size_t begin = 0; begin < text.size(); begin = line.next) {
    line = line_at(text.bytes(), begin);
    if (line.begin > 0) {
      result.append("\n", text.origin(line.begin - 1));
      if (blank_lines || line.end > line.begin) result.append(spaces);
    }
    result.append(text, line.begin, line.end - line.begin);
    runtime.require_text_size(result.size());
  }
  return runtime.text(std::move(result));
}

Value tojson_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "tojson", given,
                              {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonLayout layout;
  layout.ascii = parameters.flag(0, false);
  layout.sort_keys = parameters.flag(3, false);
  if (const Value* const indent = parameters.find(1); indent != nullptr && !indent->is_none()) {
    layout.indent = spaces_of(runtime, *indent);
    layout.item_separator.resize(1);  // ","
  }
  if (const Value* const given_pair = parameters.find(2);
      given_pair != nullptr && !given_pair->is_none()) {
    const List* const pair = given_pair->pointer<List>();
    if (pair == nullptr || pair->items.size() != 2 || pair->items[0].text() == nullptr ||
        pair->items[1].text() == nullptr) {
      runtime.fail("the separators of 'tojson' must be two strings");
    }
    layout.item_separator = pair->items[0].text()->bytes();
    layout.key_separator = pair->items[1].text()->bytes();
  }
  return runtime.text(to_json(runtime, input, layout));
}

// Digits without the underscores that Python allows between two of them.
std::string without_underscores(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_alphanumeric = [&](std::size_t at) {
      return at < text.size() &&
             ((text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'z') ||
              (text[at] >= 'A' && text[at] <= 'Z'));
    };
    const bool divides =
        text[i] == '_' && i > 0 && is_alphanumeric(i - 1) && is_alphanumeric(i + 1);
    if (!divides) digits += text[i];
  }
  return digits;
}

template <class Number, class... Base>
std::optional<Number> parsed_number(std::string_view text, Base... base) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parsed_real(std::string_view text) {
  std::string digits = without_underscores(text);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.erase(0, 1);
  return parsed_number<double>(digits);
}

// In a base of 2 to 36, where 0x, 0o and 0b may stand before the digits of their bases; base 0 is
// the one that they name.
std::optional<std::int64_t> parsed_integer(std::string_view text, int base) {
  std::string digits = without_underscores(text);
  const std::size_t sign = digits.starts_with('+') || digits.starts_with('-') ? 1 : 0;
  int named = 0;
  if (digits.size() > sign + 1 && digits[sign] == '0') {
    const char letter = digits[sign + 1];
    if (letter == 'x' || letter == 'X') named = 16;
    if (letter == 'o' || letter == 'O') named = 8;
    if (letter == 'b' || letter == 'B') named = 2;
  }
  if (named != 0 && (base == 0 || base == named)) {
    digits.erase(sign, digits.size() > sign + 2 && digits[sign + 2] == '_' ? 3 : 2);
    base = named;
    if (digits.substr(sign).starts_with('-')) return std::nullopt;
  } else if (base == 0) {
    base = 10;
  }
  if (digits.starts_with('+')) digits.erase(0, 1);
  if (sign == 1 && digits.starts_with('-') && text.starts_with('+')) return std::nullopt;
  return parsed_number<std::int64_t>(digits, base);
}

Value truncated(const Runtime& runtime, double value) {
  if (!(std::abs(value) < 9.2e18)) runtime.fail("{} does not fit into 64 bits", value);
  return static_cast<std::int64_t>(value);
}

Value int_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "int", given, {"default", "base"});
  const std::int64_t base = parameters.integer(1, 10);
  if (base != 0 && (base < 2 || base > 36)) runtime.fail("'int' has bases 0 and 2 to 36");
  require_defined(runtime, input);
  if (input.is_integer()) return input.integer();
  if (input.is_number() && std::isfinite(input.real())) return truncated(runtime, input.real());
  if (input.text() != nullptr) {
    runtime.count_read(input.text()->size());
    const Text text = strip(*input.text(), Side::both);
    if (const auto integer = parsed_integer(text.bytes(), static_cast<int>(base))) return *integer;
    const auto real = parsed_real(text.bytes());
    if (real && std::isfinite(*real)) return truncated(runtime, *real);
  }
  return parameters.find(0) == nullptr ? Value(std::int64_t{0}) : parameters.at(0);
}

Value float_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "float", given, {"default"});
  require_defined(runtime, input);
  if (input.is_number()) return input.real();
  if (input.text() != nullptr) {
    runtime.count_read(input.text()->size());
    if (const auto real = parsed_real(strip(*input.text(), Side::both).bytes())) return *real;
  }
  return parameters.find(0) == nullptr ? Value(0.0) : parameters.at(0);
}

Value abs_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "abs", given, {});
  if (!input.is_number()) runtime.fail("a value of type {} has no sign", type_name(input));
  return apply_unary(runtime, input.real() < 0 ? UnaryOperator::negative : UnaryOperator::positive,
                     input);
}

// To the even neighbour where a number is halfway, as Python rounds.
Value round_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "round", given, {"precision", "method"});
  const std::int64_t precision = parameters.integer(0, 0);
  const std::string_view method =
      parameters.find(1) == nullptr ? "common" : parameters.text(1).bytes();
  if (!input.is_number()) runtime.fail("a value of type {} is not a number", type_name(input));
  if (precision < 0 || precision > 15) {
    runtime.fail_unsupported("rounding to other than 0 to 15 decimals");
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return std::ceil(input.real() * scale) / scale;
  if (method == "floor") return std::floor(input.real() * scale) / scale;
  if (method != "common") runtime.fail("'round' has no method '{}'", shortened(method));
  if (input.is_integer()) return input.integer();
  if (!std::isfinite(input.real())) return input;
  return *parsed_real(fmt::format("{:.{}f}", input.real(), precision));
}

Value format_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  if (!given.named.empty() && !given.positional.empty()) {
    runtime.fail("'format' takes values or names, not both");
  }
  Dict* const names = given.named.empty() ? nullptr : runtime.new_dict();
  for (const auto& [name, value] : given.named) names->set(runtime, runtime.text(name), value);
  const std::vector<Value> values = names == nullptr ? given.positional : std::vector{Value(names)};
  return runtime.text(percent_format(runtime, to_text(runtime, input), values, names));
}

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

constexpr std::array filters_of_text = {
    Filter{"trim", trim_filter},
    Filter{"upper", case_filter<Letters::upper>},
    Filter{"lower", case_filter<Letters::lower>},
    Filter{"capitalize", case_filter<Letters::capitalized>},
    Filter{"title", case_filter<Letters::jinja_title>},
    Filter{"string", string_filter},
    Filter{"replace", replace_filter},
    Filter{"indent", indent_filter},
    Filter{"tojson", tojson_filter},
    Filter{"int", int_filter},
    Filter{"float", float_filter},
    Filter{"abs", abs_filter},
    Filter{"round", round_filter},
    Filter{"format", format_filter},
    Filter{"escape", escape_filter},
    Filter{"e", escape_filter},
    Filter{"forceescape", forceescape_filter},
    Filter{"safe", safe_filter},
    Filter{"urlencode", urlencode_filter},
    Filter{"center", center_filter},
    Filter{"wordcount", wordcount_filter},
    Filter{"truncate", truncate_filter},
};

}  // namespace

std::span<const Filter> text_filters() { return filters_of_text; }

}  // namespace heed::chat
