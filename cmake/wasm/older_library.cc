#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#if _LIBCPP_VERSION < 200000

namespace std {
namespace {

bool begins_a_number(const char* first, const char* last) {
  if (first != last && *first == '-') ++first;
  if (first == last) return false;
  if (*first >= '0' && *first <= '9') return true;
  if (*first == '.') return first + 1 != last && first[1] >= '0' && first[1] <= '9';
  const string_view rest(first, static_cast<size_t>(last - first));
  const auto is_word = [&](string_view word) {
    if (rest.size() < word.size()) return false;
    for (size_t i = 0; i < word.size(); ++i) {
      if ((rest[i] | 0x20) != word[i]) return false;
    }
    return true;
  };
  return is_word("inf") || is_word("nan");
}

template <class T>
from_chars_result read(const char* first, const char* last, T& value,
                       T (*parse)(const char*, char**)) {
  if (!begins_a_number(first, last)) return {first, errc::invalid_argument};
  string text(first, last);  // strtod() wants a zero byte
  // Hexadecimal numbers are another format: of 0x1, the 0 is read.
  const size_t digit = text.front() == '-' ? 1 : 0;
  if (text.size() > digit + 1 && (text[digit + 1] | 0x20) == 'x') text.resize(digit + 1);
  char* end = nullptr;
  const int before = errno;
  errno = 0;
  const T parsed = parse(text.c_str(), &end);
  const bool is_outside = errno == ERANGE;
  errno = before;
  const from_chars_result result{first + (end - text.c_str()), errc{}};
  if (is_outside) return {result.ptr, errc::result_out_of_range};
  value = parsed;
  return result;
}

}  // namespace

from_chars_result from_chars(const char* first, const char* last, float& value) {
  return read(first, last, value, strtof);
}
from_chars_result from_chars(const char* first, const char* last, double& value) {
  return read(first, last, value, strtod);
}

}  // namespace std

#endif

#if _LIBCPP_VERSION < 16000

namespace std {
namespace {

// The shortest decimal: 0.d₁d₂… × 10^point.
struct Decimal {
  string digits;
  int point = 0;
};

Decimal decimal_of(string_view shown) {  // "123.4", "1.234e-05"
  Decimal decimal;
  const size_t e = min(shown.find('e'), shown.size());
  const string_view mantissa = shown.substr(0, e);
  const size_t dot = min(mantissa.find('.'), mantissa.size());
  decimal.point = static_cast<int>(dot);
  if (e < shown.size()) decimal.point += atoi(string(shown.substr(e + 1)).c_str());
  for (const char c : mantissa) {
    if (c != '.') decimal.digits += c;
  }
  const size_t zeros = min(decimal.digits.find_first_not_of('0'), decimal.digits.size());
  decimal.digits.erase(0, zeros);
  decimal.point -= static_cast<int>(zeros);
  while (!decimal.digits.empty() && decimal.digits.back() == '0') decimal.digits.pop_back();
  if (decimal.digits.empty()) return {"0", 1};
  return decimal;
}

string in_fixed(const Decimal& decimal) {
  const auto size = static_cast<int>(decimal.digits.size());
  if (decimal.point <= 0) {
    return "0." + string(static_cast<size_t>(-decimal.point), '0') + decimal.digits;
  }
  if (decimal.point >= size) {
    return decimal.digits + string(static_cast<size_t>(decimal.point - size), '0');
  }
  const auto whole = static_cast<size_t>(decimal.point);
  return decimal.digits.substr(0, whole) + "." + decimal.digits.substr(whole);
}

string in_scientific(const Decimal& decimal) {
  string text = decimal.digits.substr(0, 1);
  if (decimal.digits.size() > 1) text += "." + decimal.digits.substr(1);
  const int exponent = decimal.point - 1;
  return text + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', abs(exponent));
}

to_chars_result put(char* first, char* last, string_view text) {
  if (last - first < static_cast<ptrdiff_t>(text.size())) return {last, errc::value_too_large};
  memcpy(first, text.data(), text.size());
  return {first + text.size(), errc{}};
}

template <class T, class Layout>
to_chars_result write(char* first, char* last, T value, Layout layout) {
  string text = signbit(value) ? "-" : "";
  if (!isfinite(value)) return put(first, last, text + (isnan(value) ? "nan" : "inf"));
  char shown[64];
  const char* const end = fmt::format_to(shown, "{}", abs(value));
  text += layout(decimal_of({shown, static_cast<size_t>(end - shown)}));
  return put(first, last, text);
}

string in_fewest(const Decimal& decimal) {
  // A fixed one with many zeros need not be made.
  if (decimal.point > 32 || decimal.point < -32) return in_scientific(decimal);
  string fixed = in_fixed(decimal), scientific = in_scientific(decimal);
  return fixed.size() <= scientific.size() ? fixed : scientific;
}

}  // namespace

to_chars_result to_chars(char* first, char* last, float value) {
  return write(first, last, value, in_fewest);
}
to_chars_result to_chars(char* first, char* last, double value) {
  return write(first, last, value, in_fewest);
}

to_chars_result to_chars(char* first, char* last, double value, chars_format format) {
  return write(first, last, value, format == chars_format::fixed ? in_fixed : in_scientific);
}

to_chars_result to_chars(char* first, char* last, double value, chars_format, int precision) {
  char text[64];
  const int size = snprintf(text, sizeof text, "%.*g", precision, value);
  return put(first, last, {text, min(static_cast<size_t>(size), sizeof text - 1)});
}

}  // namespace std

#endif
