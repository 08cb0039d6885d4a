// Threads that compute parts of parallel loops.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/loop_part.h"
#include "base/sleeper.h"
#include "base/thread_lateness.h"

namespace heed {

// Whether the calling thread computes a part of a loop of any pool.
bool computes_part();

// The threads of one caller. Each is offered some parts of a loop and then takes what others have
// not begun: a thread that does not run holds nobody up but for a part that it has begun. One that
// the system keeps suspending in the middle of parts rests for a while (base/thread_lateness.h).
// Who computes a part never changes what is computed. Threads that wait for longer than a moment
// sleep.
class ThreadPool {
 public:
  // With the calling thread, `threads` >= 2. Throws Error{unsupported} where the system starts
  // fewer.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The caller's included.
  int threads() const { return threads_; }

  // Calls part(loop, p) for all p in [0, parts), parts <= 65535, in the first `threads` of the
  // pool's: part p in thread p, as far as that one begins in time and there are so many. Once all
  // have ended, throws what the first of them threw. For one thread at a time, the one that made
  // the pool.
  void run(int parts, int threads, LoopPart part, void* loop);

 private:
  struct Seat;

  Seat& seat(int thread);
  void start(int thread);
  void end();
  void serve(int thread, int threads);
  int offer(int parts, int threads);
  int compute_parts(int thread, std::uint32_t loop);
  void compute(int part);
  bool has_ended();
  void wait_for_end();
  void charge_late_seats(std::chrono::steady_clock::time_point now);

  int threads_;
  std::unique_ptr<Seat[]> seats_;  // (threads), the caller's first
  std::atomic<bool> ends_ = false;
  // The loop: written before its parts are offered.
  LoopPart part_ = nullptr;
  void* loop_ = nullptr;
  std::uint32_t number_ = 0;
  std::atomic<int> processor_ = -1;  // of the caller
  std::mutex mutex_;                 // guards:
  std::exception_ptr error_;
  int failed_part_ = 0;
  // Of the caller alone.
  std::vector<int> called_;  // the threads that were offered parts, without the caller
  int parts_elsewhere_ = 0;  // that others have begun
  RestingThreads resting_;
  Sleeper caller_;
};

}  // namespace heed
