// One thread: who waits for a job does those before it.
#include "server/compute.h"

namespace heed::server {

Compute::Compute() = default;

Compute::~Compute() {
  while (work_once()) {
  }
}

void Compute::post(std::function<void()> job) { jobs_.push_back(std::move(job)); }

void Compute::post_last(std::function<void()> job) { last_.push_back(std::move(job)); }

std::int64_t Compute::waiting() const {
  return static_cast<std::int64_t>(jobs_.size() + last_.size());
}

bool Compute::work_once() {
  auto& jobs = jobs_.empty() ? last_ : jobs_;
  if (jobs.empty()) return false;
  const std::function<void()> job = std::move(jobs.front());
  jobs.pop_front();
  job();
  return true;
}

// Jobs that these post wait for the next call.
void Compute::do_posted() {
  for (std::size_t left = jobs_.size(); left > 0 && !jobs_.empty(); --left) work_once();
}

}  // namespace heed::server
