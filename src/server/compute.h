// The one thread that computes with models: requests take turns in the order in which they came, so
// that together they never ask for more cores than there are.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/progress.h"

namespace heed::server {

class Compute {
 public:
  Compute();
  ~Compute();  // finishes what was asked
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;

  // Waits for its turn, calls work() on the computing thread and returns what it returned or throws
  // what it threw. Throws Error{interrupted} if `stop` was set before the turn came. Work that is
  // itself computed must not call this.
  template <class Work>
  std::invoke_result_t<Work> run(StopFlag stop, Work&& work) {
    check(std::this_thread::get_id() != thread_.get_id(),
          "computing work does not wait for itself");
    std::packaged_task<std::invoke_result_t<Work>()> task([&] {
      require(!stop_requested(stop), ErrorCode::interrupted, "stopped before the work began");
      return work();
    });
    auto result = task.get_future();
    post([&task] { task(); });
    return result.get();
  }

  // The same without waiting; the job must not throw. A job may post another, behind those waiting.
  void post(std::function<void()> job);

  std::int64_t waiting() const;  // jobs that have not begun

 private:
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace heed::server
