// A place where one thread sleeps until another wakes it.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace heed {

// Without the yields of std::atomic::wait: a thread that yields gives whatever else runs on its
// core, however low its priority, a slice of milliseconds, and has no claim to get the core back
// when it is woken.
class Sleeper {
 public:
  // Returns after wake(), at once if `has_come` holds, and sometimes for nothing.
  template <class HasCome>
  void sleep(HasCome&& has_come) {
    is_asleep_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (has_come()) {
      is_asleep_.store(0, std::memory_order_relaxed);
      return;
    }
    while (is_asleep_.load(std::memory_order_acquire) != 0) call(FUTEX_WAIT_PRIVATE, 1);
  }

  // Follows a sequentially consistent fence, which follows the writing of what `has_come` reads.
  // Calls the system only once for each sleep; returns whether it did.
  bool wake() {
    if (is_asleep_.load(std::memory_order_relaxed) == 0) return false;
    if (is_asleep_.exchange(0, std::memory_order_acq_rel) == 0) return false;
    call(FUTEX_WAKE_PRIVATE, 1);
    return true;
  }

 private:
  void call(int operation, std::uint32_t value) {
    static_assert(sizeof(is_asleep_) == sizeof(std::uint32_t));
    ::syscall(SYS_futex, &is_asleep_, operation, value, nullptr, nullptr, 0);
  }

  std::atomic<std::uint32_t> is_asleep_ = 0;
};

}  // namespace heed
