// SIGINT and SIGTERM: the first asks work to stop at its next safe point, the second ends the
// process at once, without the files that it was writing. SIGHUP asks likewise, however often it
// comes. Before any work looks at the flag, the first ends the process too.
#pragma once

#include "base/progress.h"

namespace heed::cli {

inline constexpr int interrupted_exit_status = 130;

// Catches them from here on; SIGHUP not where it is ignored, as nohup does.
void catch_interrupts();

// The StopFlag of long work, set by the first signal. From the first call on, a single signal no
// longer ends the process: call it where the work that looks at the flag begins, not before reading
// input or loading a model.
StopFlag interrupt_flag();

// Takes signals within a second for one: mpirun, and the terminal that it runs in, may both pass a
// Ctrl-C on to a process.
void merge_signals();

// A write beyond a limit of sizes (ulimit -f) fails, as it does on a full disk, where it would end
// the process.
void let_large_writes_fail();

// Forgets the first signal: the work that it stopped was a part of what goes on.
void clear_interrupt();

}  // namespace heed::cli
