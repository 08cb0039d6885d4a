#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/interrupt.h"
#include "cli/terminal/progress_line.h"
#include "comm/launch.h"

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

int exit_status(ErrorCode code) {
  if (code == ErrorCode::invalid_argument) return usage_error;
  if (code == ErrorCode::interrupted) return interrupted_exit_status;
  return work_failed;
}

void say(const std::string& message) {
  ProgressLine::clear_any();
  const std::string line = "heed: " + escape_controls(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void report_once(const std::string& message) {
  const bool is_several = launched_processes().value_or(1) > 1;
  if (is_several && launched_rank().value_or(0) > 0) {
    std::this_thread::sleep_for(std::chrono::seconds(5));
  }
  say(message);
}

}  // namespace heed::cli
