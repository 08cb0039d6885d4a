// Threads of a page that is isolated from other origins: workers that share the module's memory.
#include <memory>

#include "base/error.h"
#include "base/thread_pool.h"
#include "base/threads.h"

namespace heed {
namespace {

constexpr int max_threads = 64;

int count_in_use = 1;

// The thread that calls the engine is the only one that begins loops.
std::unique_ptr<ThreadPool> pool;

}  // namespace

int thread_count() { return count_in_use; }

void set_thread_count(int count) {
  require(count >= 1 && count <= max_threads, ErrorCode::invalid_argument,
          "the number of threads must be between 1 and {}, not {}", max_threads, count);
  count_in_use = count;
}

void share_machine(int) {}

bool in_parallel_loop() { return computes_part(); }

void run_in_threads(int parts, LoopPart part, void* loop) {
  const int threads = thread_count();
  if (threads == 1) {
    for (int p = 0; p < parts; ++p) part(loop, p);
    return;
  }
  if (pool == nullptr || pool->threads() < threads) {
    pool = nullptr;
    pool = std::make_unique<ThreadPool>(threads);
  }
  pool->run(parts, threads, part, loop);
}

}  // namespace heed
