#include "base/thread_lateness.h"

#include <algorithm>

namespace heed {

RestingThreads::RestingThreads(int threads) : records_(static_cast<std::size_t>(threads)) {}

bool RestingThreads::still_rests(int thread, Clock::time_point now) {
  Record& record = records_[static_cast<std::size_t>(thread)];
  if (!record.is_resting) return false;
  if (now < record.until) return true;
  record.is_resting = false;
  record.debt = most_debt - most_debt_on_trial;
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
  if (record.debt <= most_debt) return;
  // A thread that was on time for long begins anew.
  const bool soon = now - record.until < longest_rest;
  record.rest = soon ? std::min(2 * record.rest, longest_rest) : shortest_rest;
  record.until = now + record.rest;
  record.is_resting = true;
  ++resting_;
}

}  // namespace heed
