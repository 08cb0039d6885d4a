#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/json.h"

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

void print_json(const OrderedJson& document) { print(json_text(document) + "\n"); }

}  // namespace heed::cli
