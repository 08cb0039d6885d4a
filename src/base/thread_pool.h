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

// The threads of one caller. Each is offered some parts of a loop and then takes parts that no
// thread has begun, so that a suspended thread delays the loop only by the part that it has begun.
// A thread that is often suspended in the middle of a part rests for a while
// (base/thread_lateness.h). Results do not depend on which thread computes a part. Threads that
// wait longer than the spinning time sleep.
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

  // Calls part(loop, p) for all p in [0, parts), parts <= 65535, in the first `threads` threads of
  // the pool: part p in thread p, if there is one and it begins in time. Once all parts have ended,
  // rethrows the exception of the first part that failed. Only the thread that made the pool may
  // call it.
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
  int parts_elsewhere_ = 0;  // begun by other threads
  RestingThreads resting_;
  Sleeper caller_;
};

}  // namespace heed
