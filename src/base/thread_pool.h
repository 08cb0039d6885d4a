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
#include "base/thread_system.h"

namespace heed {

// A place where one thread sleeps until another wakes it, without the yields of std::atomic::wait:
// a thread that yields gives whatever else runs on its core, however low its priority, a slice of
// milliseconds, and has no claim to get the core back when it is woken.
class Sleeper {
 public:
  // Returns after wake(), at once if `has_come` holds, and sometimes for nothing.
  template <class HasCome>
  void sleep(HasCome&& has_come) {
    is_asleep_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (has_come()) {
      is_asleep_.store(0, std::memory_order_relaxed);
      return;
    }
    while (is_asleep_.load(std::memory_order_acquire) != 0) sleep_while(is_asleep_, 1);
  }

  // Follows a sequentially consistent fence, which follows the writing of what `has_come` reads.
  // Calls the system only once for each sleep; returns whether it did.
  bool wake() {
    if (is_asleep_.load(std::memory_order_relaxed) == 0) return false;
    if (is_asleep_.exchange(0, std::memory_order_acq_rel) == 0) return false;
    wake_one(is_asleep_);
    return true;
  }

 private:
  std::atomic<std::uint32_t> is_asleep_ = 0;
};

// Which threads of a pool are worth using: a thread that shares its core with another program is
// suspended for milliseconds, and the threads that need its unfinished part wait that long. Threads
// that were suspended for too much of the loops' time rest: they are offered no parts. One of n
// threads adds at most 1/n to the speed, so its delays may cost half of that. The length of a rest
// doubles each time that the thread is late again soon after it.
class RestingThreads {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  // The delay, beyond the allowance, after which a thread rests.
  static constexpr Duration max_debt = std::chrono::milliseconds(5);
  // The same, right after a rest.
  static constexpr Duration max_debt_on_trial = std::chrono::milliseconds(1);
  static constexpr Duration min_rest = std::chrono::milliseconds(20);
  static constexpr Duration max_rest = std::chrono::seconds(1);

  explicit RestingThreads(int threads);

  // Whether `thread`, in [1, threads), rests at `now`.
  bool rests(int thread, Clock::time_point now) { return resting_ > 0 && still_rests(thread, now); }
  int resting() const { return resting_; }

  // Adds the time that a loop took.
  void add_loop(Duration loop) { loops_ += loop; }

  // Reports that the others waited for `thread`, one of `threads` that computed, because it was
  // suspended for this long.
  void was_late(int thread, int threads, Duration suspended, Clock::time_point now);

 private:
  struct Record {
    Duration debt{};     // accumulated delay; time spent in loops reduces it
    Duration settled{};  // the value of loops_ that is already deducted
    Duration rest = min_rest;
    Clock::time_point until{};  // the end of the rest
    bool is_resting = false;
  };

  bool still_rests(int thread, Clock::time_point now);

  std::vector<Record> records_;  // (threads)
  Duration loops_{};
  int resting_ = 0;
};

// Whether the calling thread computes a part of a loop of any pool.
bool computes_part();

// The threads of one caller. Each is offered some parts of a loop and then takes parts that no
// thread has begun, so that a suspended thread delays the loop only by the part that it has begun.
// A thread that is often suspended in the middle of a part rests for a while
// (RestingThreads). Results do not depend on which thread computes a part. Threads that wait longer
// than the spinning time sleep.
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
