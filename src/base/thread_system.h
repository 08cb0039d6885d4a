// What a pool of threads asks of the system.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

namespace heed {

// Sleeps while `word` is `value`, until wake_one(word); may return for nothing.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value);
void wake_one(std::atomic<std::uint32_t>& word);

// The processor that the calling thread is on; -1: the system does not tell.
int current_processor();

// Shows for how long a thread has run.
class ThreadClock {
 public:
  ThreadClock() = default;
  explicit ThreadClock(std::thread& thread);

  // None where the system does not tell.
  std::optional<std::chrono::steady_clock::duration> time_run() const;

 private:
  std::optional<std::int64_t> clock_;
};

// What the user may have limited: "the limit on processes and threads is 512 (ulimit -u)".
std::string thread_limits();

}  // namespace heed
