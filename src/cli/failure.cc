#include "cli/failure.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "base/utf8.h"
#include "cli/interrupt.h"
#include "cli/terminal/progress_line.h"
#include "comm/launch.h"

namespace heed::cli {

int exit_status(ErrorCode code) {
  if (code == ErrorCode::invalid_argument) return wrong_call;
  if (code == ErrorCode::interrupted) return interrupted_exit_status;
  return work_failed;
}

void say(const std::string& message) {
  ProgressLine::clear_any();
  const std::string line = "heed: " + escape_controls(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void say_in_turn(const std::string& message) {
  const bool is_several = launched_processes().value_or(1) > 1;
  if (is_several && launched_rank().value_or(0) > 0) {
    std::this_thread::sleep_for(std::chrono::seconds(5));
  }
  say(message);
}

}  // namespace heed::cli
