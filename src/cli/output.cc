#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

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

std::string shown_text(std::string_view text) {
  static const bool on_terminal = ::isatty(STDOUT_FILENO) == 1;
  return on_terminal ? escape_controls_in_lines(text) : std::string(text);
}

void print_json(const OrderedJson& document) { print(json_text(document) + "\n"); }

}  // namespace heed::cli
