// Threads for connections: as many as are open at once, up to a bound. One that finds nothing to do
// for a while ends, and gives back its stack and what the allocator keeps for it.
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

  // Finishes what was enqueued and waits for the threads to end. Must come before destruction.
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
