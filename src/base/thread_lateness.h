// Which threads of a pool are worth using: a thread that shares its core with another program is
// suspended for milliseconds, and the threads that need its unfinished part wait that long.
#pragma once

#include <chrono>
#include <vector>

namespace heed {

// Threads that were suspended for too much of the loops' time rest: they are offered no parts. One
// of n threads adds at most 1/n to the speed, so its delays may cost half of that. The length of a
// rest doubles each time that the thread is late again soon after it.
class RestingThreads {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  // The delay, beyond the allowance, after which a thread rests.
  static constexpr Duration most_debt = std::chrono::milliseconds(5);
  // The same, right after a rest.
  static constexpr Duration most_debt_on_trial = std::chrono::milliseconds(1);
  static constexpr Duration shortest_rest = std::chrono::milliseconds(20);
  static constexpr Duration longest_rest = std::chrono::seconds(1);

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
    Duration rest = shortest_rest;
    Clock::time_point until{};  // the end of the rest
    bool is_resting = false;
  };

  bool still_rests(int thread, Clock::time_point now);

  std::vector<Record> records_;  // (threads)
  Duration loops_{};
  int resting_ = 0;
};

}  // namespace heed
