#include "comm/mover.h"

#include <chrono>

namespace heed {
namespace {

// Often enough for links of 10 Gbit/s, of which buffers of 1.25 MB then suffice; seldom enough
// to take less than a hundredth of a core.
constexpr std::chrono::microseconds interval{1000};

}  // namespace

Mover::Mover(const HeedTransport& transport, std::mutex& lock)
    : transport_(transport), lock_(lock), thread_([this] { run(); }) {}

Mover::~Mover() {
  {
    const std::scoped_lock hold(lock_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Mover::set_busy(bool is_busy) {
  if (is_busy == is_busy_) return;
  is_busy_ = is_busy;
  if (is_busy) changed_.notify_one();
}

void Mover::run() {
  std::unique_lock hold(lock_);
  while (!is_ending_) {
    if (!is_busy_) {
      changed_.wait(hold, [this] { return is_busy_ || is_ending_; });
      continue;
    }
    transport_.progress();
    hold.unlock();
    std::this_thread::sleep_for(interval);
    // Whoever holds it moves exchanges on.
    while (!hold.try_lock()) std::this_thread::sleep_for(interval);
  }
}

}  // namespace heed
