// Threads that wait for parts of parallel loops.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <thread>

namespace heed {

// Computes part number `part` of a loop.
using LoopPart = void (*)(void* loop, int part);

// What the calling thread will read once it has waited for other threads: it asks memory for these
// bytes meanwhile, a cache line at a time, as far as it comes. Replaces those of before; none are
// read here, so that they need not exist for longer than the call.
void fetch_while_waiting(std::span<const std::byte> bytes);

// The threads of one caller. OpenMP starts them, so that its variables (OMP_PLACES,
// OMP_PROC_BIND) say where they run, and they are handed parts without its barriers: a loop begins
// and ends within half a microsecond, whatever OMP_WAIT_POLICY other libraries need. A thread
// that waits for longer than a moment sleeps.
class ThreadPool {
 public:
  // With the calling thread, `threads` >= 2, or fewer where OpenMP starts fewer.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // As it was asked for.
  int wanted() const { return wanted_; }

  // Calls part(loop, p) for all p in [0, parts): p in thread p, as far as there are so many, of
  // which the caller is the first. Once all have ended, throws what the first of them threw.
  // For one thread at a time, the one that made the pool.
  void run(int parts, LoopPart part, void* loop);

 private:
  struct Seat;

  Seat& seat(int thread);
  void serve(int thread);
  void compute_parts(int thread);

  int wanted_;
  int threads_ = 1;
  std::unique_ptr<Seat[]> seats_;  // (threads)
  std::atomic<bool> ends_ = false;
  // The loop: written before threads are called.
  LoopPart part_ = nullptr;
  void* loop_ = nullptr;
  int parts_ = 0;
  std::thread starter_;
};

}  // namespace heed
