// SIGINT and SIGTERM: the first asks work to stop at its next safe point, the second ends the
// process at once. Before any work looks at the flag, the first ends the process too.
#pragma once

#include "base/progress.h"

namespace heed::cli {

inline constexpr int interrupted_exit_status = 130;

// Catches SIGINT and SIGTERM from here on.
void catch_interrupts();

// The StopFlag of long work, set by the first signal. From the first call on, a single signal no
// longer ends the process: call it where the work that looks at the flag begins, not before reading
// input or loading a model.
StopFlag interrupt_flag();

// Forgets the first signal: the work that it stopped was a part of what goes on.
void clear_interrupt();

}  // namespace heed::cli
