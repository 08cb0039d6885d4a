// Ctrl-C, asked once, lets work stop at its next safe point; asked twice, ends at once.
#pragma once

#include "base/progress.h"

namespace heed::cli {

inline constexpr int interrupted_exit_status = 130;

// Catches SIGINT and SIGTERM from here on.
void catch_interrupts();

// Set by the first signal; what long work takes as its StopFlag.
StopFlag interrupt_flag();

}  // namespace heed::cli
