#include "server/connection_threads.h"

#include <system_error>
#include <thread>

namespace heed::server {

void ConnectionThreads::enqueue(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (jobs_.size() > idle_ && threads_ < most_) start_thread();
  }
  changed_.notify_one();
}

// If the system cannot create a thread, the job waits for a busy one.
void ConnectionThreads::start_thread() {
  try {
    std::thread([this] { work(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {
  }
}

void ConnectionThreads::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait_for(lock, idle_time, [&] { return closing_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) break;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
  --threads_;
  ended_.notify_all();  // under the lock: shutdown() may destroy the condition once it has it
}

void ConnectionThreads::shutdown() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
  ended_.wait(lock, [&] { return threads_ == 0; });
}

std::size_t ConnectionThreads::threads() const {
  const std::lock_guard lock(mutex_);
  return threads_;
}

}  // namespace heed::server
