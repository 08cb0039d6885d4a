// Parallel loops.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/loop_part.h"

namespace heed {

// The number of threads in parallel loops, at least 1. Set by -t, HEED_THREADS or OMP_NUM_THREADS,
// or else planned from the machine (base/topology.h).
int thread_count();
void set_thread_count(int count);

// Divides the machine's threads among `processes` processes that compute on it, this one included.
// Has no effect if the number of threads was set.
void share_machine(int processes);

// Whether the caller computes a part of a loop, in which further loops stay serial.
bool in_parallel_loop();

// Calls part(loop, p) for all p in [0, parts), parts <= thread_count(), each in its own thread if
// that begins in time (base/thread_pool.h), and rethrows the exception of the first part that
// failed. The parallel loops below use it.
void run_in_threads(int parts, LoopPart part, void* loop);

template <class Part>
void run_in_threads(int parts, Part part) {
  run_in_threads(
      parts, [](void* loop, int p) { (*static_cast<Part*>(loop))(p); }, &part);
}

// Calls body(begin, end) on disjoint ranges that cover [0, count), at most thread_count(), each of
// at least `grain` items except the last. The split depends on count, grain and thread_count()
// only, not on which threads take part.
template <class Body>
void parallel_ranges(std::int64_t count, std::int64_t grain, Body&& body) {
  const std::int64_t wanted = grain > 0 ? (count + grain - 1) / grain : count;
  const int threads = static_cast<int>(std::min<std::int64_t>(wanted, thread_count()));
  if (threads <= 1 || in_parallel_loop()) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
  run_in_threads(
      threads, [&](int thread) { body(count * thread / threads, count * (thread + 1) / threads); });
}

// Calls body(i) for every i in [0, count), with dynamic scheduling, one item at a time. Results
// must not depend on which thread computes an item. After an exception no further item is begun.
template <class Body>
void parallel_items(std::int64_t count, Body&& body) {
  const int threads = static_cast<int>(std::min<std::int64_t>(count, thread_count()));
  if (threads <= 1 || in_parallel_loop()) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<std::int64_t> next = 0;
  run_in_threads(threads, [&](int) {
    try {
      for (std::int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(i);
    } catch (...) {
      next = count;
      throw;
    }
  });
}

// Like parallel_ranges, but a thread processes its range in pieces, each half of the remaining
// items rounded up to a multiple of `unit`, and then takes pieces of ranges that other threads have
// not finished, so that a thread that is slowed down does not delay the loop. Most items are still
// computed by the thread whose memory node holds them. Results must not depend on which thread
// computes an item. If there are several threads, each calls end(thread, threads) after its last
// piece.
template <class Body, class End>
void parallel_shares(std::int64_t count, std::int64_t grain, std::int64_t unit, Body&& body,
                     End&& end) {
  constexpr int most = 64;  // threads; more have plain ranges
  const std::int64_t wanted = grain > 0 ? (count + grain - 1) / grain : count;
  const int threads = static_cast<int>(std::min<std::int64_t>(wanted, thread_count()));
  if (threads <= 1 || threads > most || in_parallel_loop()) {
    return parallel_ranges(count, grain, std::forward<Body>(body));
  }
  struct alignas(64) Share {
    std::atomic<std::int64_t> next;
    std::int64_t end;
  };
  Share shares[most];
  for (int thread = 0; thread < threads; ++thread) {
    shares[thread].next.store(count * thread / threads, std::memory_order_relaxed);
    shares[thread].end = count * (thread + 1) / threads;
  }
  const auto take_all = [&](Share& share) {
    std::int64_t begin = share.next.load(std::memory_order_relaxed);
    while (begin < share.end) {
      const std::int64_t left = share.end - begin;
      const std::int64_t taken = std::min(left, (left + 2 * unit - 1) / (2 * unit) * unit);
      if (!share.next.compare_exchange_weak(begin, begin + taken, std::memory_order_relaxed)) {
        continue;  // `begin` is now where another thread went on
      }
      body(begin, begin + taken);
      begin = share.next.load(std::memory_order_relaxed);
    }
  };
  parallel_ranges(threads, 1, [&](std::int64_t thread, std::int64_t) {
    for (int other = 0; other < threads; ++other) take_all(shares[(thread + other) % threads]);
    end(thread, threads);
  });
}

template <class Body>
void parallel_shares(std::int64_t count, std::int64_t grain, std::int64_t unit, Body&& body) {
  parallel_shares(count, grain, unit, std::forward<Body>(body), [](std::int64_t, std::int64_t) {});
}

}  // namespace heed
