// Errors as the user sees them: one line, and an exit status.
#pragma once

#include <string>

#include "base/error.h"

namespace heed::cli {

enum ExitStatus { done = 0, work_failed = 1, wrong_call = 2 };

int exit_status(ErrorCode code);

// "heed: message", to standard error, with control characters escaped.
void say(const std::string& message);

// The same of what a process finds wrong before it knows the others that mpirun or srun started,
// who may find it too: the first says it, and the others are ended while they wait.
void say_in_turn(const std::string& message);

}  // namespace heed::cli
