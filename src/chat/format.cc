// Python's two ways of formatting, in part: no widths but those of zeros and spaces, no alignment.
#include <charconv>
#include <cmath>

#include "chat/arithmetic.h"
#include "chat/operators.h"
#include "chat/print.h"

namespace heed::chat {
namespace {

// %[0][width][.precision]kind
struct Conversion {
  bool zeros = false;
  std::size_t width = 0;
  std::optional<std::size_t> precision;
  char kind = 's';
};

constexpr std::size_t widest = 1000;

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Text& format, const std::vector<Value>& values)
      : runtime_(runtime), format_(format), bytes_(format.bytes()), values_(values) {}

  Text run() {
    while (position_ < bytes_.size()) {
      const std::size_t percent = std::min(bytes_.find('%', position_), bytes_.size());
      result_.append(format_, position_, percent - position_);
      position_ = percent;
      if (percent < bytes_.size()) convert();
    }
    if (next_ < values_.size()) runtime_.fail("a format has more values than places");
    return std::move(result_);
  }

 private:
  std::size_t number() {
    std::size_t value = 0;
    while (position_ < bytes_.size() && bytes_[position_] >= '0' && bytes_[position_] <= '9') {
      value = std::min(widest + 1, value * 10 + static_cast<std::size_t>(bytes_[position_] - '0'));
      ++position_;
    }
    if (value > widest) runtime_.fail("a format is wider than {}", widest);
    return value;
  }

  Conversion read_conversion() {
    Conversion conversion;
    ++position_;  // the percent sign
    if (position_ < bytes_.size() && bytes_[position_] == '0') conversion.zeros = true;
    conversion.width = number();
    if (position_ < bytes_.size() && bytes_[position_] == '.') {
      ++position_;
      conversion.precision = number();
    }
    if (position_ == bytes_.size()) runtime_.fail("a format ends after '%'");
    conversion.kind = bytes_[position_++];
    return conversion;
  }

  void convert() {
    const Conversion conversion = read_conversion();
    if (conversion.kind == '%') {
      result_.append("%");
      return;
    }
    if (next_ == values_.size()) runtime_.fail("a format has more places than values");
    const Value& value = values_[next_++];
    const Text text = converted(conversion, value);
    const std::size_t size = character_count(text.bytes());
    const std::size_t missing = conversion.width - std::min(conversion.width, size);
    const bool zeros = conversion.zeros && conversion.kind != 's';
    const std::size_t sign = zeros && text.bytes().starts_with('-') ? 1 : 0;
    result_.append(text, 0, sign);
    result_.append(std::string(missing, zeros ? '0' : ' '));
    result_.append(text, sign, text.size() - sign);
    if (result_.size() > runtime_.limits().output_bytes) runtime_.count_bytes(result_.size());
  }

  Text converted(const Conversion& conversion, const Value& value) {
    switch (conversion.kind) {
      case 's': {
        Text text = to_text(runtime_, value);
        if (!conversion.precision) return text;
        const auto offsets = character_offsets(text.bytes());
        return text.part(0, offsets[std::min(*conversion.precision, offsets.size() - 1)]);
      }
      case 'd':
      case 'i': return Text(std::to_string(whole(value)));
      case 'x': {
        const std::int64_t number = whole(value);
        const auto size =
            number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
        return Text(fmt::format("{}{:x}", number < 0 ? "-" : "", size));
      }
      case 'f':
        if (!value.is_number()) break;
        return Text(fmt::format("{:.{}f}", value.real(), conversion.precision.value_or(6)));
      default: runtime_.fail_unsupported(fmt::format("the format '%{}'", shown(conversion.kind)));
    }
    runtime_.fail("'%{}' cannot format a value of type {}", conversion.kind, type_name(value));
  }

  static std::string shown(char kind) {
    return kind > ' ' && kind < 0x7F ? std::string(1, kind) : "";
  }

  std::int64_t whole(const Value& value) const {
    if (value.is_integer()) return value.integer();
    if (!value.is_number() || !(std::abs(value.real()) < 9e18)) {
      runtime_.fail("a value of type {} is not a whole number of 64 bits", type_name(value));
    }
    return static_cast<std::int64_t>(value.real());
  }

  Runtime& runtime_;
  const Text& format_;
  std::string_view bytes_;
  const std::vector<Value>& values_;
  std::size_t position_ = 0;
  std::size_t next_ = 0;
  Text result_;
};

// The value of the field between braces; `automatic` counts the empty ones.
Value brace_field(Runtime& runtime, std::string_view field, const Arguments& arguments,
                  std::size_t& automatic) {
  if (field.find_first_of(":!.[{") != std::string_view::npos) {
    runtime.fail_unsupported(fmt::format("the format field '{}'", shortened(field)));
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), index);
  const bool is_number = error == std::errc() && end == field.data() + field.size();
  if (field.empty()) index = automatic++;
  if (field.empty() || is_number) {
    if (index >= arguments.positional.size()) {
      runtime.fail("a format has more fields than values");
    }
    return arguments.positional[index];
  }
  for (const auto& [name, value] : arguments.named) {
    if (name == field) return value;
  }
  runtime.fail("a format has no value for the field '{}'", shortened(field));
}

}  // namespace

Text percent_format(Runtime& runtime, const Text& format, const std::vector<Value>& values) {
  return PercentFormatter(runtime, format, values).run();
}

Text brace_format(Runtime& runtime, const Text& format, const Arguments& arguments) {
  const std::string_view bytes = format.bytes();
  Text result;
  std::size_t automatic = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    const bool doubled = i + 1 < bytes.size() && bytes[i + 1] == c;
    if (c != '{' && c != '}') {
      result.append(format, i, 1);
    } else if (doubled) {
      result.append(format, i++, 1);
    } else {
      const std::size_t close = bytes.find('}', i);
      if (c == '}' || close == std::string_view::npos) {
        runtime.fail("a format has a single '{}'", c);
      }
      runtime.count_steps(1);
      result.append(to_text(
          runtime, brace_field(runtime, bytes.substr(i + 1, close - i - 1), arguments, automatic)));
      i = close;
      if (result.size() > runtime.limits().output_bytes) runtime.count_bytes(result.size());
    }
  }
  return result;
}

}  // namespace heed::chat
