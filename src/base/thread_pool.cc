#include "base/thread_pool.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <latch>
#include <span>
#include <string_view>
#include <utility>

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread spins before it sleeps: longer than most waits between two loops. Where other
// libraries want the cores (passive), as long as waking a sleeping thread takes. It never yields:
// that gives whatever else runs on the core, however low its priority, a slice of milliseconds,
// while a thread that sleeps gets its core back as soon as it is told.
Clock::duration longest_spin() {
  const char* const policy = std::getenv("OMP_WAIT_POLICY");
  const std::string_view wanted = policy == nullptr ? "" : policy;
  if (wanted == "passive" || wanted == "PASSIVE") return std::chrono::microseconds(50);
  return std::chrono::microseconds(200);
}

constexpr std::size_t cache_line = 64;

thread_local std::span<const std::byte> not_fetched;

void fetch_a_line() {
  if (not_fetched.empty()) return;
  __builtin_prefetch(not_fetched.data(), 0, 2);  // into the second level of the caches
  not_fetched = not_fetched.subspan(std::min(cache_line, not_fetched.size()));
}

}  // namespace

void fetch_while_waiting(std::span<const std::byte> bytes) { not_fetched = bytes; }

// Of a thread; what it and the caller tell each other lies in cache lines apart.
struct ThreadPool::Seat {
  // Counts what one thread tells another.
  class Signal {
   public:
    // For the one that tells: announce(), a sequentially consistent fence, wake().
    void announce() {
      count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    void wake() {
      if (is_asleep_.load(std::memory_order_relaxed)) count_.notify_one();
    }
    void send() {
      announce();
      std::atomic_thread_fence(std::memory_order_seq_cst);
      wake();
    }

    // For the one that is told: waits for the next since the last.
    void receive() {
      if (!spin()) sleep();
      ++received_;
    }

   private:
    bool has_come(std::memory_order order) const { return count_.load(order) != received_; }

    // False: nothing has come yet.
    bool spin() const {
      static const Clock::duration longest = longest_spin();
      constexpr int looks = 256;  // between two at the clock
      Clock::time_point begin{};
      while (true) {
        for (int look = 0; look < looks; ++look) {
          if (has_come(std::memory_order_acquire)) return true;
          fetch_a_line();
        }
        const Clock::time_point now = Clock::now();
        if (begin == Clock::time_point{}) begin = now;
        if (now - begin > longest) return false;
      }
    }

    void sleep() {
      is_asleep_.store(true, std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      count_.wait(received_, std::memory_order_acquire);
      is_asleep_.store(false, std::memory_order_relaxed);
    }

    std::atomic<std::uint32_t> count_ = 0;
    std::uint32_t received_ = 0;
    std::atomic<bool> is_asleep_ = false;
  };

  alignas(64) Signal call;
  alignas(64) Signal end;
  std::exception_ptr error;
};

ThreadPool::ThreadPool(int threads) : wanted_(threads) {
  // The region lasts as long as the pool. The calling thread is not in it, so that it may use
  // OpenMP between two loops, as other libraries do: another one keeps its place there and sleeps.
  std::latch has_started(1);
  starter_ = std::thread([this, threads, &has_started] {
#pragma omp parallel num_threads(threads)
    {
#pragma omp single
      {
        threads_ = omp_get_num_threads();
        seats_ = std::make_unique<Seat[]>(static_cast<std::size_t>(threads_));
      }
      if (const int thread = omp_get_thread_num(); thread > 0) {
        serve(thread);
      } else {
        has_started.count_down();
        ends_.wait(false);
      }
    }
  });
  has_started.wait();
}

ThreadPool::~ThreadPool() {
  ends_ = true;
  ends_.notify_one();
  for (int thread = 1; thread < threads_; ++thread) seat(thread).call.send();
  starter_.join();
}

ThreadPool::Seat& ThreadPool::seat(int thread) { return seats_[static_cast<std::size_t>(thread)]; }

void ThreadPool::serve(int thread) {
  Seat& own = seat(thread);
  while (true) {
    own.call.receive();
    if (ends_) return;
    compute_parts(thread);
    own.end.send();
  }
}

void ThreadPool::compute_parts(int thread) {
  for (int part = thread; part < parts_; part += threads_) {
    try {
      part_(loop_, part);
    } catch (...) {
      if (!seat(thread).error) seat(thread).error = std::current_exception();
    }
  }
}

void ThreadPool::run(int parts, LoopPart part, void* loop) {
  part_ = part;
  loop_ = loop;
  parts_ = parts;
  const int called = std::min(parts, threads_);
  for (int thread = 1; thread < called; ++thread) seat(thread).call.announce();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int thread = 1; thread < called; ++thread) seat(thread).call.wake();
  compute_parts(0);
  for (int thread = 1; thread < called; ++thread) seat(thread).end.receive();
  std::exception_ptr error;
  for (int thread = called - 1; thread >= 0; --thread) {
    if (seat(thread).error) error = std::exchange(seat(thread).error, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace heed
