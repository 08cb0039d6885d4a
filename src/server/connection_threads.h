// A pool of threads for connections, which grows with the open connections up to a limit. An idle
// thread ends after a while, which releases its stack and its malloc cache.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace heed::server {

class ConnectionThreads {
 public:
  static constexpr std::chrono::milliseconds idle_time{500};

  explicit ConnectionThreads(std::size_t most) : most_(most) {}
  ConnectionThreads(const ConnectionThreads&) = delete;
  ConnectionThreads& operator=(const ConnectionThreads&) = delete;

  // Jobs beyond the bound wait for a thread.
  void enqueue(std::function<void()> job);

  // Finishes all jobs in the queue and joins the threads. Must be called before destruction.
  void shutdown();

  std::size_t threads() const;

 private:
  void start_thread();
  void work();

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable ended_;
  std::deque<std::function<void()>> jobs_;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;  // of them
  bool closing_ = false;
};

}  // namespace heed::server
