// Python's two ways of formatting: "%s" % value and "{}".format(value).
#include "chat/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

#include "chat/operators.h"

namespace heed::chat {
namespace {

// Numbers in Python's formats.

struct NumberFormat {
  std::string fill = " ";  // one character
  char align = '>';        // < ^ > and =, which puts the fill after the sign; a space: not given
  char sign = '-';         // of numbers that are not negative: + or a space; -: none
  bool zeros = false;      // the width begins with 0
  std::size_t width = 0;
  char grouping = ' ';  // , or _ between thousands; a space: none
  std::optional<std::size_t> precision{};
  char kind = 's';  // d x X o b f F e E g G %; a space: as str() writes it
};

std::string whole_digits(std::uint64_t size, char kind) {
  switch (kind) {
    case 'x': return fmt::format("{:x}", size);
    case 'X': return fmt::format("{:X}", size);
    case 'o': return fmt::format("{:o}", size);
    case 'b': return fmt::format("{:b}", size);
    default: return fmt::format("{}", size);
  }
}

std::string real_digits(double size, const NumberFormat& format) {
  const std::size_t precision = format.precision.value_or(6);
  switch (format.kind) {
    case 'e': return fmt::format("{:.{}e}", size, precision);
    case 'E': return fmt::format("{:.{}E}", size, precision);
    case 'g': return fmt::format("{:.{}g}", size, precision);
    case 'G': return fmt::format("{:.{}G}", size, precision);
    case 'F': return fmt::format("{:.{}F}", size, precision);
    case '%': return fmt::format("{:.{}f}%", size * 100, precision);
    case ' ': return format.precision ? fmt::format("{:.{}g}", size, precision) : real_text(size);
    default: return fmt::format("{:.{}f}", size, precision);
  }
}

std::string grouped(const std::string& digits, char separator) {
  std::size_t whole = 0;
  while (whole < digits.size() && digits[whole] >= '0' && digits[whole] <= '9') ++whole;
  std::string result;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) result += separator;
    result += digits[i];
  }
  return result + digits.substr(whole);
}

// The sign and digits of a number; the width is not applied. Throws for a kind that the number does
// not have.
std::string formatted_number(const Runtime& runtime, const Value& value,
                             const NumberFormat& format) {
  constexpr std::string_view whole_kinds = "dxXob";
  constexpr std::string_view real_kinds = "fFeEgG%";
  const bool is_whole = value.is_integer();
  const bool wants_whole = whole_kinds.find(format.kind) != std::string_view::npos;
  const bool wants_real = real_kinds.find(format.kind) != std::string_view::npos;
  const bool takes_any = format.kind == ' ';
  if ((!is_whole && wants_whole) || (!wants_whole && !wants_real && !takes_any)) {
    runtime.fail("a value of type {} has no format of this kind", type_name(value));
  }
  const bool negative = is_whole ? value.integer() < 0 : std::signbit(value.real());
  std::string digits;
  if (is_whole && !wants_real) {
    if (format.precision) runtime.fail("a whole number has no precision");
    const auto bits = static_cast<std::uint64_t>(value.integer());
    digits = whole_digits(negative ? -bits : bits, format.kind);
  } else {
    digits = real_digits(std::abs(value.real()), format);
  }
  if (format.grouping != ' ') digits = grouped(digits, format.grouping);
  if (negative) return "-" + digits;
  return (format.sign == '-' ? "" : std::string(1, format.sign)) + digits;
}

constexpr std::size_t widest = 1000;

std::size_t read_width(Runtime& runtime, std::string_view bytes, std::size_t& position) {
  std::size_t value = 0;
  while (position < bytes.size() && bytes[position] >= '0' && bytes[position] <= '9') {
    value = std::min(widest + 1, value * 10 + static_cast<std::size_t>(bytes[position] - '0'));
    ++position;
  }
  if (value > widest) runtime.fail("a format is wider than {}", widest);
  return value;
}

// The first `count` characters.
Text beginning(const Text& text, std::size_t count) {
  return text.part(0, offset_after(text.bytes(), 0, count));
}

// A text in a field. Zeros go between the sign of a number and its digits.
Text aligned(const Text& text, const NumberFormat& format) {
  const std::size_t size = character_count(text.bytes());
  const std::size_t missing = format.width - std::min(format.width, size);
  std::string fill;
  for (std::size_t i = 0; i < missing; ++i) fill += format.fill;
  const bool has_sign = text.bytes().starts_with('-') || text.bytes().starts_with('+');
  const std::size_t split = format.align == '=' && has_sign ? 1 : 0;
  const std::size_t left = format.align == '<' ? 0 : format.align == '^' ? missing / 2 : missing;
  const std::size_t unit = format.fill.size();
  Text result;
  result.append(text, 0, split);
  result.append(std::string_view(fill).substr(0, left * unit));
  result.append(text, split, text.size() - split);
  result.append(std::string_view(fill).substr(left * unit));
  return result;
}

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Text& format, const std::vector<Value>& values,
                   const Dict* names)
      : runtime_(runtime),
        format_(format),
        bytes_(format.bytes()),
        values_(values),
        names_(names) {}

  Text run() {
    runtime_.count_read(bytes_.size());
    while (position_ < bytes_.size()) {
      const std::size_t percent = std::min(bytes_.find('%', position_), bytes_.size());
      result_.append(format_, position_, percent - position_);
      position_ = percent;
      if (percent < bytes_.size()) convert();
    }
    if (next_ < values_.size() && names_ == nullptr) {
      runtime_.fail("a format has more values than places");
    }
    return format_.is_markup() ? result_.as_markup() : std::move(result_);
  }

 private:
  struct Conversion {
    NumberFormat format;
    bool has_name = false;
    std::string_view name;
  };

  // %[(name)][flags][width][.precision]kind
  Conversion read_conversion() {
    Conversion conversion;
    NumberFormat& format = conversion.format;
    ++position_;  // the percent sign
    if (bytes_.substr(position_).starts_with('(')) {
      const std::size_t close = bytes_.find(')', position_);
      if (close == std::string_view::npos) runtime_.fail("a format has a '(' without ')'");
      conversion.has_name = true;
      conversion.name = bytes_.substr(position_ + 1, close - position_ - 1);
      position_ = close + 1;
    }
    for (; position_ < bytes_.size(); ++position_) {
      const char flag = bytes_[position_];
      if (flag == '-') format.align = '<';
      if (flag == '0') format.zeros = true;
      if (flag == '+' || (flag == ' ' && format.sign != '+')) format.sign = flag;
      if (flag != '-' && flag != '0' && flag != '+' && flag != ' ') break;
    }
    format.width = read_width(runtime_, bytes_, position_);
    if (position_ < bytes_.size() && bytes_[position_] == '.') {
      ++position_;
      format.precision = read_width(runtime_, bytes_, position_);
    }
    if (position_ == bytes_.size()) runtime_.fail("a format ends after '%'");
    format.kind = bytes_[position_++];
    return conversion;
  }

  const Value& value_for(const Conversion& conversion) {
    if (conversion.has_name) {
      if (names_ == nullptr) runtime_.fail("a format with names needs a dict");
      const Value* const found = names_->find_name(runtime_, conversion.name);
      if (found == nullptr) {
        runtime_.fail("a format has no value for '{}'", shortened(conversion.name));
      }
      return *found;
    }
    if (next_ == values_.size()) runtime_.fail("a format has more places than values");
    return values_[next_++];
  }

  void convert() {
    Conversion conversion = read_conversion();
    NumberFormat& format = conversion.format;
    if (format.kind == '%') {
      result_.append("%");
      return;
    }
    const Text text = converted(format, value_for(conversion));
    const bool is_number = std::string_view("src").find(format.kind) == std::string_view::npos;
    if (format.zeros && is_number && format.align != '<') {
      format.align = '=';
      format.fill = "0";
    }
    result_.append(aligned(text, format));
    runtime_.require_text_size(result_.size());
  }

  Text converted(const NumberFormat& format, const Value& value) {
    if (format.kind == 's' || format.kind == 'r') {
      Text text = format.kind == 'r' ? to_repr(runtime_, value) : to_text(runtime_, value);
      if (format_.is_markup()) text = html_escaped(runtime_, text);
      return format.precision ? beginning(text, *format.precision) : text;
    }
    if (format.kind == 'c') return character(value);
    const bool is_whole = std::string_view("diuxXo").find(format.kind) != std::string_view::npos;
    if (is_whole && format.precision) runtime_.fail_unsupported("a precision of a whole number");
    if (!value.is_number()) {
      runtime_.fail("a format for numbers is given a value of type {}", type_name(value));
    }
    NumberFormat plain = format;
    if (format.kind == 'i' || format.kind == 'u') plain.kind = 'd';
    if (plain.kind == 'd') return Text(formatted_number(runtime_, Value(whole(value)), plain));
    if (is_whole && !value.is_integer()) runtime_.fail("a whole number is needed, not a float");
    return Text(formatted_number(runtime_, value, plain));
  }

  Text character(const Value& value) const {
    if (const Text* const text = value.text(); text && character_count(text->bytes()) == 1) {
      return *text;
    }
    if (!value.is_integer() || value.integer() < 0 || value.integer() > 0x10FFFF ||
        (value.integer() >= 0xD800 && value.integer() <= 0xDFFF)) {
      runtime_.fail("'%c' needs one character");
    }
    std::string bytes;
    append_character(bytes, static_cast<char32_t>(value.integer()));
    return Text(bytes);
  }

  std::int64_t whole(const Value& value) const {
    if (value.is_integer()) return value.integer();
    if (!(std::abs(value.real()) < 9e18)) {
      runtime_.fail("{} is not a whole number of 64 bits", value.real());
    }
    return static_cast<std::int64_t>(value.real());
  }

  Runtime& runtime_;
  const Text& format_;
  std::string_view bytes_;
  const std::vector<Value>& values_;
  const Dict* names_;
  std::size_t position_ = 0;
  std::size_t next_ = 0;
  Text result_;
};

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Text& format, const Arguments& arguments)
      : runtime_(runtime), format_(format), arguments_(arguments) {}

  Text run() {
    const std::string_view bytes = format_.bytes();
    runtime_.count_read(bytes.size());
    Text result;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const char c = bytes[i];
      const bool doubled = i + 1 < bytes.size() && bytes[i + 1] == c;
      if (c != '{' && c != '}') {
        result.append(format_, i, 1);
      } else if (doubled) {
        result.append(format_, i++, 1);
      } else {
        const std::size_t close = bytes.find('}', i);
        if (c == '}' || close == std::string_view::npos) {
          runtime_.fail("a format has a single '{}'", c);
        }
        result.append(field(bytes.substr(i + 1, close - i - 1)));
        i = close;
        runtime_.require_text_size(result.size());
      }
    }
    return result;
  }

 private:
  // name.attribute[key]!conversion:specification
  Text field(std::string_view text) {
    runtime_.count_steps(1 + arguments_.named.size());
    const std::size_t colon = std::min(text.find(':'), text.size());
    std::string_view path = text.substr(0, colon);
    char conversion = ' ';
    if (path.size() >= 2 && path[path.size() - 2] == '!') {
      conversion = path.back();
      path.remove_suffix(2);
    }
    const Value value = element(path);
    if (conversion != ' ' && conversion != 's' && conversion != 'r') {
      runtime_.fail_unsupported(fmt::format("the format field '{}'", shortened(text)));
    }
    if (conversion == 'r') return specified(runtime_.text(to_repr(runtime_, value)), text, colon);
    if (conversion == 's') return specified(runtime_.text(to_text(runtime_, value)), text, colon);
    return specified(value, text, colon);
  }

  Value element(std::string_view path) {
    const std::size_t name = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, name));
    path.remove_prefix(name);
    while (!path.empty()) {
      runtime_.count_steps(1);
      const bool is_item = path[0] == '[';
      const std::size_t end =
          is_item ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
      if (end == std::string_view::npos || end < 2) runtime_.fail("a format field is not valid");
      const std::string_view key = path.substr(1, end - 1);
      std::int64_t index = 0;
      const auto parsed = std::from_chars(key.data(), key.data() + key.size(), index);
      const bool is_index = parsed.ec == std::errc() && parsed.ptr == key.data() + key.size();
      value = is_item ? item_of(runtime_, value, is_index ? Value(index) : runtime_.text(key))
                      : attribute_of(runtime_, value, key);
      require_defined(runtime_, value);
      path.remove_prefix(end + (is_item ? 1 : 0));
    }
    return value;
  }

  const Value& argument(std::string_view name) {
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_number = error == std::errc() && end == name.data() + name.size();
    if (name.empty()) index = automatic_++;
    if (name.empty() || is_number) {
      if (index >= arguments_.positional.size()) {
        runtime_.fail("a format has more fields than values");
      }
      return arguments_.positional[index];
    }
    for (const auto& [given, value] : arguments_.named) {
      if (given == name) return value;
    }
    runtime_.fail("a format has no value for the field '{}'", shortened(name));
  }

  Text specified(const Value& value, std::string_view field, std::size_t colon) {
    const std::string_view specification = field.substr(std::min(colon + 1, field.size()));
    if (specification.empty()) return to_text(runtime_, value);
    NumberFormat format;
    if (!read_specification(specification, format)) {
      runtime_.fail_unsupported(fmt::format("the format field '{}'", shortened(field)));
    }
    const bool is_number = value.is_number();
    if (!is_number && value.text() == nullptr) {
      runtime_.fail("a value of type {} has no format '{}'", type_name(value),
                    shortened(specification));
    }
    if (is_number) {
      if (format.align == ' ') format.align = format.zeros ? '=' : '>';
      if (format.zeros && format.fill == " ") format.fill = "0";
      return aligned(Text(formatted_number(runtime_, value, format)), format);
    }
    if (format.align == '=' || format.sign != '-' || format.grouping != ' ' ||
        (format.kind != 's' && format.kind != ' ')) {
      runtime_.fail("a string has no format '{}'", shortened(specification));
    }
    if (format.zeros) format.fill = "0";
    if (format.align == ' ') format.align = '<';
    const Text text = to_text(runtime_, value);
    return aligned(format.precision ? beginning(text, *format.precision) : text, format);
  }

  // [[fill]align][sign][0][width][,][.precision][kind]
  bool read_specification(std::string_view text, NumberFormat& format) {
    constexpr std::string_view aligns = "<>=^";
    format = {.align = ' ', .kind = ' '};
    const std::size_t first = character_size(text, 0);
    std::size_t i = 0;
    if (first < text.size() && aligns.find(text[first]) != std::string_view::npos) {
      format.fill = text.substr(0, first);
      format.align = text[first];
      i = first + 1;
    } else if (aligns.find(text[0]) != std::string_view::npos) {
      format.align = text[0];
      i = 1;
    }
    const auto at = [&](std::string_view any) {
      return i < text.size() && any.find(text[i]) != std::string_view::npos;
    };
    if (at("+- ")) format.sign = text[i++];
    if (at("0")) format.zeros = true;
    format.width = read_width(runtime_, text, i);
    if (at(",_")) format.grouping = text[i++];
    if (at(".")) format.precision = read_width(runtime_, text, ++i);
    if (at("sdxXobcfFeEgG%")) format.kind = text[i++];
    return i == text.size() && format.kind != 'c';
  }

  Runtime& runtime_;
  const Text& format_;
  const Arguments& arguments_;
  std::size_t automatic_ = 0;
};

}  // namespace

Text percent_format(Runtime& runtime, const Text& format, const std::vector<Value>& values,
                    const Dict* names) {
  return PercentFormatter(runtime, format, values, names).run();
}

Text brace_format(Runtime& runtime, const Text& format, const Arguments& arguments) {
  return BraceFormatter(runtime, format, arguments).run();
}

Text padded(Runtime& runtime, const Text& text, const Padding& padding) {
  if (padding.fill.empty() || character_size(padding.fill.bytes(), 0) != padding.fill.size()) {
    runtime.fail("a width is filled with one character");
  }
  runtime.count_read(text.size());
  const auto size = static_cast<std::int64_t>(character_count(text.bytes()));
  if (padding.width <= size) return text;
  const std::int64_t missing = padding.width - size;
  runtime.require_text_size(static_cast<std::size_t>(padding.width));
  runtime.count_bytes(text.size() + static_cast<std::size_t>(missing) * padding.fill.size());
  // Python puts the odd one of centred text to the left where the width is odd.
  const std::int64_t left = padding.filled == Side::left ? missing
                            : padding.filled == Side::right
                                ? 0
                                : missing / 2 + (missing & padding.width & 1);
  Text result = text.part(0, 0);
  for (std::int64_t i = 0; i < left; ++i) result.append(padding.fill);
  result.append(text);
  for (std::int64_t i = left; i < missing; ++i) result.append(padding.fill);
  return result;
}

}  // namespace heed::chat
