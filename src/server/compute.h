// The single thread that answers with models; a run that the server trains has a thread of its own
// and gives way to this one. Jobs run in the order in which they are posted, so that
// concurrent requests do not oversubscribe the cores. A browser has no such thread
// (browser/compute.cc): there the callers of run() and work_once() do the jobs.
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
  ~Compute();  // runs all posted jobs
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;

  // Calls work() on the computing thread after all posted jobs, and returns its result or rethrows
  // its exception. Throws Error{interrupted} if `stop` is set by then. Must not be called on the
  // computing thread.
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
    do_posted();
    return result.get();
  }

  // The same without waiting; the job must not throw. A job may post another.
  void post(std::function<void()> job);

  // The same after all jobs that are posted meanwhile, where their callers do them.
  void post_last(std::function<void()> job);

  std::int64_t waiting() const;  // jobs not yet begun

  // Where there is no computing thread, does the next job, if one waits; returns whether it did.
  bool work_once();

 private:
  void work();
  void do_posted();  // where there is no computing thread: the jobs that wait by now

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::deque<std::function<void()>> last_;  // in a browser
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace heed::server
