#include "chat/format_number.h"

#include <cmath>

#include "chat/print.h"

namespace heed::chat {
namespace {

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

}  // namespace

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

}  // namespace heed::chat
