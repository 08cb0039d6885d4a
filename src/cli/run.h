// The command line: parses a call, runs its command and reports its result or error.
#pragma once

namespace heed::cli {

// Runs the call that main() was given and returns the program's exit status: 0, 1 for work that
// failed, 2 for a wrong call, or that of an interrupt.
int run(int argc, char** argv);

}  // namespace heed::cli
