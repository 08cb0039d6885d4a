#include "server/compute.h"

namespace heed::server {

Compute::Compute() : thread_([this] { work(); }) {}

Compute::~Compute() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Compute::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

std::int64_t Compute::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(jobs_.size());
}

void Compute::post_last(std::function<void()> job) { post(std::move(job)); }

bool Compute::work_once() { return false; }
void Compute::do_posted() {}

void Compute::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace heed::server
