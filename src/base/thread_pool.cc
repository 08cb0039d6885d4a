#include "base/thread_pool.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/topology.h"

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread spins before it sleeps: longer than most waits between two loops. Where other
// libraries want the cores (passive), as long as waking a sleeping thread takes.
Clock::duration max_spin() {
  const char* const policy = std::getenv("OMP_WAIT_POLICY");
  const std::string_view wanted = policy == nullptr ? "" : policy;
  if (wanted == "passive" || wanted == "PASSIVE") return std::chrono::microseconds(50);
  return std::chrono::microseconds(200);
}

// After this time the caller checks whether the thread that it waits for is running at all.
constexpr Clock::duration suspicious_wait = std::chrono::microseconds(50);

// How long a thread spins that was woken and has not computed a part since.
constexpr Clock::duration spin_in_vain = std::chrono::microseconds(50);
// Cost of waking a thread that goes back to sleep without computing a part: the system call, the
// context switches from and to the caller, and their delays on a busy system.
constexpr Clock::duration cost_of_waking_in_vain = std::chrono::microseconds(200);

constexpr std::size_t cache_line = 64;

thread_local std::span<const std::byte> not_fetched;

void fetch_a_line() {
  if (not_fetched.empty()) return;
  __builtin_prefetch(not_fetched.data(), 0, 2);  // into the second level of the caches
  not_fetched = not_fetched.subspan(std::min(cache_line, not_fetched.size()));
}

// Spins until has_come() holds, at most for `longest`, or until is_futile(). Returns has_come().
template <class HasCome, class IsFutile>
bool spin(Clock::duration longest, HasCome&& has_come, IsFutile&& is_futile) {
  constexpr int looks = 256;  // between two at the clock
  Clock::time_point begin{};
  while (true) {
    for (int look = 0; look < looks; ++look) {
      if (has_come()) return true;
      fetch_a_line();
    }
    const Clock::time_point now = Clock::now();
    if (begin == Clock::time_point{}) begin = now;
    if (now - begin > longest || is_futile()) return false;
  }
}

thread_local bool is_computing = false;

// Parts [next, end) of a loop that no thread has begun: one word, so that a thread that comes late
// cannot take a part of another loop.
struct Share {
  std::uint32_t loop;
  std::uint32_t next;
  std::uint32_t end;

  explicit Share(std::uint64_t word)
      : loop(static_cast<std::uint32_t>(word >> 32)),
        next(static_cast<std::uint32_t>(word >> 16 & 0xFFFF)),
        end(static_cast<std::uint32_t>(word & 0xFFFF)) {}
  static std::uint64_t word(std::uint32_t loop, int next, int end) {
    return std::uint64_t{loop} << 32 | static_cast<std::uint64_t>(next) << 16 |
           static_cast<std::uint64_t>(end);
  }
};

// How many parts of a loop a thread has computed, or that it computes one.
struct SeatProgress {
  static constexpr std::uint32_t computing = 0xFFFFFFFF;
  std::uint32_t loop;
  std::uint32_t parts;

  explicit SeatProgress(std::uint64_t word)
      : loop(static_cast<std::uint32_t>(word >> 32)), parts(static_cast<std::uint32_t>(word)) {}
  static std::uint64_t word(std::uint32_t loop, std::uint32_t parts) {
    return std::uint64_t{loop} << 32 | parts;
  }
};

}  // namespace

void fetch_while_waiting(std::span<const std::byte> bytes) { not_fetched = bytes; }

bool computes_part() { return is_computing; }

// Of a thread; what it and others write lies in cache lines apart.
struct ThreadPool::Seat {
  alignas(cache_line) std::atomic<std::uint64_t> share = 0;
  Sleeper sleeper;
  alignas(cache_line) std::atomic<std::uint64_t> progress = 0;
  std::atomic<int> processor = -1;  // where the thread was last seen
  // Of the caller.
  std::thread thread;
  std::uint32_t woken = 0;        // the loop for which the thread was woken
  ThreadClock clock;              // of the time that the thread has run
  Clock::duration run_before{};   // and what it showed when the caller began to suspect it,
  Clock::time_point suspected{};  // at this time; {}: not

  std::optional<int> take(std::uint32_t loop) {
    std::uint64_t word = share.load(std::memory_order_acquire);
    while (true) {
      const Share left(word);
      if (left.loop != loop || left.next == left.end) return std::nullopt;
      if (share.compare_exchange_weak(word, word + (std::uint64_t{1} << 16),
                                      std::memory_order_acquire)) {
        return static_cast<int>(left.next);
      }
    }
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(threads),
      seats_(std::make_unique<Seat[]>(static_cast<std::size_t>(threads))),
      resting_(threads) {
  called_.reserve(static_cast<std::size_t>(threads));
  for (int thread = 1; thread < threads; ++thread) {
    try {
      start(thread);
    } catch (const std::exception&) {  // std::system_error, std::bad_alloc
      threads_ = thread;
      end();
      fail(ErrorCode::unsupported,
           "the system starts {} of {} threads: {}; ask for fewer by -t or HEED_THREADS", thread,
           threads, thread_limits());
    }
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::start(int thread) {
  Seat& own = seat(thread);
  own.thread = std::thread([this, thread, threads = threads_] { serve(thread, threads); });
  own.clock = ThreadClock(own.thread);
}

void ThreadPool::end() {
  ends_ = true;
  ++number_;
  for (int thread = 1; thread < threads_; ++thread) {
    seat(thread).share.store(Share::word(number_, 0, 0), std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    seat(thread).sleeper.wake();
    seat(thread).thread.join();
  }
}

ThreadPool::Seat& ThreadPool::seat(int thread) { return seats_[static_cast<std::size_t>(thread)]; }

void ThreadPool::serve(int thread, int threads) {
  is_computing = true;
  keep_in_place(thread, threads);
  static const Clock::duration longest = max_spin();
  Seat& own = seat(thread);
  std::uint32_t last = 0;
  const auto is_called = [&] {
    return Share(own.share.load(std::memory_order_acquire)).loop != last;
  };
  // The system may run this thread in the place of the caller, which goes on once this one sleeps.
  const auto is_in_the_way = [&] {
    const int processor = current_processor();
    own.processor.store(processor, std::memory_order_relaxed);
    return processor >= 0 && processor == processor_.load(std::memory_order_relaxed);
  };
  Clock::duration wait = longest;
  while (true) {
    if (!spin(wait, is_called, is_in_the_way)) {
      own.sleeper.sleep(is_called);
      wait = std::min(spin_in_vain, longest);
    }
    if (ends_) return;
    last = Share(own.share.load(std::memory_order_acquire)).loop;
    if (is_in_the_way() || compute_parts(thread, last) == 0) continue;
    wait = longest;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    caller_.wake();
  }
}

// Gives the caller and the threads that do not rest equal shares; returns their number.
int ThreadPool::offer(int parts, int threads) {
  const Clock::time_point now = resting_.resting() > 0 ? Clock::now() : Clock::time_point{};
  called_.clear();
  for (int thread = 1; thread < threads && std::ssize(called_) + 1 < parts; ++thread) {
    if (!resting_.rests(thread, now)) called_.push_back(thread);
  }
  const int sharing = static_cast<int>(called_.size()) + 1;
  ++number_;
  processor_.store(current_processor(), std::memory_order_relaxed);
  const auto share = [&](int index) {
    return Share::word(number_, parts * index / sharing, parts * (index + 1) / sharing);
  };
  seat(0).share.store(share(0), std::memory_order_release);
  for (int index = 1; index < sharing; ++index) {
    seat(called_[static_cast<std::size_t>(index) - 1])
        .share.store(share(index), std::memory_order_release);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const int thread : called_) {
    Seat& woken = seat(thread);
    if (!woken.sleeper.wake()) continue;
    const SeatProgress progress(woken.progress.load(std::memory_order_relaxed));
    const bool in_vain = static_cast<std::int32_t>(progress.loop - woken.woken) < 0;
    if (in_vain) resting_.was_late(thread, sharing, cost_of_waking_in_vain, Clock::now());
    woken.woken = number_;
  }
  return sharing;
}

void ThreadPool::compute(int part) {
  try {
    part_(loop_, part);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (error_ && failed_part_ < part) return;
    error_ = std::current_exception();
    failed_part_ = part;
  }
}

// First its own share, then what is left of the others'. Returns the number of parts.
int ThreadPool::compute_parts(int thread, std::uint32_t loop) {
  Seat& own = seat(thread);
  int done = 0;
  for (int other = 0; other < threads_; ++other) {
    Seat& from = seat((thread + other) % threads_);
    while (const std::optional<int> part = from.take(loop)) {
      if (done++ == 0) {
        own.progress.store(SeatProgress::word(loop, SeatProgress::computing),
                           std::memory_order_relaxed);
      }
      compute(*part);
    }
  }
  if (done > 0) {
    own.progress.store(SeatProgress::word(loop, static_cast<std::uint32_t>(done)),
                       std::memory_order_release);
  }
  return done;
}

// Whether the parts that the caller did not compute are done.
bool ThreadPool::has_ended() {
  int done = 0;
  for (const int thread : called_) {
    const SeatProgress progress(seat(thread).progress.load(std::memory_order_acquire));
    if (progress.loop == number_ && progress.parts != SeatProgress::computing) {
      done += static_cast<int>(progress.parts);
    }
  }
  return done == parts_elsewhere_;
}

// Others compute what they have begun. Whether one that takes long is suspended shows in the time
// that it has run: a part that is long is no reason to rest.
void ThreadPool::wait_for_end() {
  static const Clock::duration longest = max_spin();
  const auto ended = [&] { return has_ended(); };
  // One that waits for this very processor gets it once the caller sleeps.
  const auto is_in_the_way = [&] {
    const int processor = current_processor();
    return processor >= 0 && std::ranges::any_of(called_, [&](int thread) {
             const SeatProgress progress(seat(thread).progress.load(std::memory_order_relaxed));
             return progress.loop == number_ && progress.parts == SeatProgress::computing &&
                    seat(thread).processor.load(std::memory_order_relaxed) == processor;
           });
  };
  const auto never = [] { return false; };
  if (spin(std::min(suspicious_wait, longest), ended, never)) return;
  const Clock::time_point begin = Clock::now();
  for (const int thread : called_) {
    Seat& late = seat(thread);
    const SeatProgress progress(late.progress.load(std::memory_order_acquire));
    if (progress.loop != number_ || progress.parts != SeatProgress::computing) continue;
    const std::optional<Clock::duration> run = late.clock.time_run();
    if (!run) continue;
    late.suspected = begin;
    late.run_before = *run;
  }
  if (!spin(longest - std::min(suspicious_wait, longest), ended, is_in_the_way)) {
    while (!has_ended()) {
      charge_late_seats(Clock::now());
      caller_.sleep(ended);
    }
  }
  charge_late_seats(Clock::now());
}

// Those that have finished.
void ThreadPool::charge_late_seats(Clock::time_point now) {
  for (const int thread : called_) {
    Seat& late = seat(thread);
    if (late.suspected == Clock::time_point{}) continue;
    const SeatProgress progress(late.progress.load(std::memory_order_acquire));
    if (progress.parts == SeatProgress::computing) continue;
    const Clock::duration waited = now - late.suspected;
    const std::optional<Clock::duration> run = late.clock.time_run();
    late.suspected = {};
    if (!run) continue;
    const Clock::duration suspended = waited - (*run - late.run_before);
    if (suspended < suspicious_wait) continue;  // the clocks are not read at once
    resting_.was_late(thread, static_cast<int>(called_.size()) + 1, suspended, now);
  }
}

void ThreadPool::run(int parts, int threads, LoopPart part, void* loop) {
  check(parts <= 65535, "the parts of a loop are counted in 16 bits");
  part_ = part;
  loop_ = loop;
  is_computing = true;
  const Clock::time_point begin = Clock::now();
  if (offer(parts, std::min(threads, threads_)) > 1) {
    parts_elsewhere_ = parts - compute_parts(0, number_);
    if (parts_elsewhere_ > 0 && !has_ended()) wait_for_end();
    resting_.add_loop(Clock::now() - begin);
  } else {
    compute_parts(0, number_);
  }
  is_computing = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

RestingThreads::RestingThreads(int threads) : records_(static_cast<std::size_t>(threads)) {}

bool RestingThreads::still_rests(int thread, Clock::time_point now) {
  Record& record = records_[static_cast<std::size_t>(thread)];
  if (!record.is_resting) return false;
  if (now < record.until) return true;
  record.is_resting = false;
  record.debt = max_debt - max_debt_on_trial;
  record.settled = loops_;
  --resting_;
  return false;
}

void RestingThreads::was_late(int thread, int threads, Duration suspended, Clock::time_point now) {
  Record& record = records_[static_cast<std::size_t>(thread)];
  if (record.is_resting) return;
  const Duration paid_off = (loops_ - record.settled) / (2 * std::max(threads, 1));
  record.settled = loops_;
  record.debt = std::max(record.debt - paid_off, Duration::zero()) + suspended;
  if (record.debt <= max_debt) return;
  // A thread that was on time for long begins anew.
  const bool soon = now - record.until < max_rest;
  record.rest = soon ? std::min(2 * record.rest, max_rest) : min_rest;
  record.until = now + record.rest;
  record.is_resting = true;
  ++resting_;
}

}  // namespace heed
