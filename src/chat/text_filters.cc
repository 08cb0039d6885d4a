#include <array>
#include <charconv>
#include <cmath>

#include "chat/arithmetic.h"
#include "chat/collections.h"
#include "chat/filters.h"
#include "chat/operators.h"
#include "chat/print.h"

namespace heed::chat {
namespace {

constexpr std::int64_t widest_indent = 1000;

Value trim_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "trim", given, {"chars"});
  const Text* const characters = parameters.optional_text(0);
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

Value safe_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  return string_filter(runtime, input, given);
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
  const Text& text = *input.text();
  const bool blank_lines = parameters.flag(2, false);
  Text result;
  if (parameters.flag(1, false)) result.append(spaces);
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.bytes().find('\n', begin), text.size());
    if (begin > 0 && (blank_lines || end > begin)) result.append(spaces);
    result.append(text, begin, end - begin);
    if (result.size() > runtime.limits().output_bytes) runtime.count_bytes(result.size());
    if (end == text.size()) return runtime.text(std::move(result));
    result.append(text, end, 1);
    begin = end + 1;
  }
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

std::optional<double> parsed_real(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parsed_integer(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Value truncated(const Runtime& runtime, double value) {
  if (!(std::abs(value) < 9.2e18)) runtime.fail("{} does not fit into 64 bits", value);
  return static_cast<std::int64_t>(value);
}

Value int_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "int", given, {"default", "base"});
  if (parameters.integer(1, 10) != 10) runtime.fail_unsupported("a base of 'int' other than 10");
  require_defined(runtime, input);
  if (input.is_integer()) return input.integer();
  if (input.is_number() && std::isfinite(input.real())) return truncated(runtime, input.real());
  if (input.text() != nullptr) {
    const Text text = strip(*input.text(), Side::both);
    if (const auto integer = parsed_integer(text.bytes())) return *integer;
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
  if (!given.named.empty()) runtime.fail_unsupported("'format' with names");
  return runtime.text(percent_format(runtime, to_text(runtime, input), given.positional));
}

constexpr std::array filters_of_text = {
    Filter{"trim", trim_filter},
    Filter{"upper", case_filter<Letters::upper>},
    Filter{"lower", case_filter<Letters::lower>},
    Filter{"capitalize", case_filter<Letters::capitalized>},
    Filter{"title", case_filter<Letters::jinja_title>},
    Filter{"string", string_filter},
    Filter{"safe", safe_filter},
    Filter{"replace", replace_filter},
    Filter{"indent", indent_filter},
    Filter{"tojson", tojson_filter},
    Filter{"int", int_filter},
    Filter{"float", float_filter},
    Filter{"abs", abs_filter},
    Filter{"round", round_filter},
    Filter{"format", format_filter},
};

}  // namespace

std::span<const Filter> text_filters() { return filters_of_text; }

}  // namespace heed::chat
