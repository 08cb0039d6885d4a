// One thread.
#include "base/threads.h"

#include "base/error.h"

namespace heed {

int thread_count() { return 1; }

void set_thread_count(int count) {
  require(count == 1, ErrorCode::invalid_argument, "a browser's heed has 1 thread, not {}", count);
}

void share_machine(int) {}

bool in_parallel_loop() { return true; }

void run_in_threads(int parts, LoopPart part, void* loop) {
  for (int p = 0; p < parts; ++p) part(loop, p);
}

void fetch_while_waiting(std::span<const std::byte>) {}

}  // namespace heed
