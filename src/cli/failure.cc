#include "cli/failure.h"

#include <cstdio>

#include "cli/interrupt.h"
#include "cli/terminal/progress_line.h"

namespace heed::cli {

int exit_status(ErrorCode code) {
  if (code == ErrorCode::invalid_argument) return wrong_call;
  if (code == ErrorCode::interrupted) return interrupted_exit_status;
  return work_failed;
}

void say(const std::string& message) {
  ProgressLine::clear_any();
  const std::string line = "heed: " + message + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace heed::cli
