// A number of threads for a part of the work.
#pragma once

#include "base/threads.h"

namespace heed {

// Sets the number of threads and restores it at the end of the scope.
class ScopedThreadCount {
 public:
  explicit ScopedThreadCount(int count) : before_(thread_count()) { set_thread_count(count); }
  ~ScopedThreadCount() { set_thread_count(before_); }
  ScopedThreadCount(const ScopedThreadCount&) = delete;
  ScopedThreadCount& operator=(const ScopedThreadCount&) = delete;

 private:
  int before_;
};

}  // namespace heed
