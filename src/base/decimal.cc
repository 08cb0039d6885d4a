#include "base/decimal.h"

#include <charconv>
#include <iterator>

namespace heed {
namespace {

double read_back(const char* begin, const char* end) {
  double value = 0;
  std::from_chars(begin, end, value);
  return value;
}

}  // namespace

double shortest_decimal(float value) {
  char digits[32];
  return read_back(digits, std::to_chars(digits, std::end(digits), value).ptr);
}

double rounded_decimal(float value, int digits) {
  char text[32];
  return read_back(
      text, std::to_chars(text, std::end(text), value, std::chars_format::general, digits).ptr);
}

}  // namespace heed
