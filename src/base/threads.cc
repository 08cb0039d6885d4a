#include "base/threads.h"

#include <cstdlib>

#include "base/error.h"

namespace heed {
namespace {

int initial_thread_count() {
  const char* wanted = std::getenv("HEED_THREADS");
  const int count = wanted != nullptr ? std::atoi(wanted) : 0;
  if (count > 0) omp_set_num_threads(count);
  return count > 0 ? count : omp_get_max_threads();
}

int& count_in_use() {
  static int count = initial_thread_count();
  return count;
}

}  // namespace

int thread_count() { return count_in_use(); }

void set_thread_count(int count) {
  require(count >= 1 && count <= 4096, ErrorCode::invalid_argument,
          "the number of threads must be between 1 and 4096, not {}", count);
  count_in_use() = count;
  omp_set_num_threads(count);
}

}  // namespace heed
