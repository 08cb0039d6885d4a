#include "cli/output.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace heed::cli {
namespace {

[[noreturn]] void fail_output() {
  fail(ErrorCode::input_output, "cannot write to standard output: {}", std::strerror(errno));
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_output();
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail_output();
}

void print_json(const OrderedJson& document) {
  // Text that a model wrote need not be UTF-8; JSON must be.
  print(document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

OrderedJson json_number(float value) {
  if (!std::isfinite(value)) return nullptr;
  // The shortest digits that give the float back, read as a double: printed, they are the same.
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  double exact = 0;
  std::from_chars(digits, end, exact);
  return exact;
}

OrderedJson json_number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

void append_json_number(std::string& text, float value) {
  if (!std::isfinite(value)) {
    text += "null";
    return;
  }
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end);
}

}  // namespace heed::cli
