#include "base/threads.h"

#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "base/topology.h"

namespace heed {
namespace {

constexpr int max_threads = 4096;

bool is_set = false;  // by the user

// OpenMP's own variable comes first; then the plan for this machine.
int default_thread_count() {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) {
    is_set = true;
    return omp_get_max_threads();
  }
  const std::vector<std::int64_t> allowed = allowed_processors();
  if (allowed.empty()) return omp_get_max_threads();
  return std::min(planned_threads(read_topology(allowed)), max_threads);
}

int initial_thread_count() {
  const char* const wanted = std::getenv("HEED_THREADS");
  if (wanted == nullptr || *wanted == '\0') {
    return default_thread_count();
  }
  int count = 0;
  const char* const end = wanted + std::strlen(wanted);
  const auto [next, error] = std::from_chars(wanted, end, count);
  require(error == std::errc{} && next == end && count >= 1 && count <= max_threads,
          ErrorCode::invalid_argument, "HEED_THREADS must be a whole number from 1 to {}, not '{}'",
          max_threads, wanted);
  is_set = true;
  return count;
}

thread_local std::unique_ptr<ThreadPool> pool;  // of a thread that began a loop

// A fork has none of the threads that its parent had.
void forget_pool() { static_cast<void>(pool.release()); }

ThreadPool& pool_of(int threads) {
  static const int watched = pthread_atfork(nullptr, nullptr, forget_pool);
  static_cast<void>(watched);
  if (pool == nullptr || pool->threads() < threads) {
    pool = nullptr;
    pool = std::make_unique<ThreadPool>(threads);
  }
  return *pool;
}

int& count_in_use() {
  static int count = initial_thread_count();
  return count;
}

}  // namespace

int thread_count() { return count_in_use(); }

void set_thread_count(int count) {
  require(count >= 1 && count <= max_threads, ErrorCode::invalid_argument,
          "the number of threads must be between 1 and {}, not {}", max_threads, count);
  count_in_use() = count;
  is_set = true;
}

bool in_parallel_loop() { return computes_part() || omp_in_parallel() != 0; }

void run_in_threads(int parts, LoopPart part, void* loop) {
  const int threads = thread_count();
  pool_of(threads).run(parts, threads, part, loop);
}

void share_machine(int processes) {
  const int count = thread_count();
  if (is_set || processes <= 1) return;
  // A launcher may have bound this process to a part of the machine already.
  std::vector<std::int64_t> all(
      static_cast<std::size_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L)));
  std::iota(all.begin(), all.end(), 0);
  const int share = std::max(planned_threads(read_topology(all)) / processes, 1);
  count_in_use() = std::min(count, share);
}

}  // namespace heed
