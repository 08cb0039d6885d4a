#include "base/thread_system.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace heed {
namespace {

void call_futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  call_futex(word, FUTEX_WAIT_PRIVATE, value);
}

void wake_one(std::atomic<std::uint32_t>& word) { call_futex(word, FUTEX_WAKE_PRIVATE, 1); }

int current_processor() { return ::sched_getcpu(); }

ThreadClock::ThreadClock(std::thread& thread) {
  clockid_t clock{};
  if (::pthread_getcpuclockid(thread.native_handle(), &clock) == 0) clock_ = clock;
}

std::optional<std::chrono::steady_clock::duration> ThreadClock::time_run() const {
  timespec time{};
  if (!clock_ || ::clock_gettime(static_cast<clockid_t>(*clock_), &time) != 0) return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::string thread_limits() {
  std::string text;
  const auto add = [&](int resource, const char* name, const char* option, rlim_t unit) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
    if (limit.rlim_cur == RLIM_INFINITY) return;
    text += fmt::format("{}the limit on {} is {} (ulimit {})", text.empty() ? "" : ", ", name,
                        limit.rlim_cur / unit, option);
  };
  add(RLIMIT_NPROC, "processes and threads", "-u", 1);
  add(RLIMIT_AS, "address space, in KiB,", "-v", 1024);
  return text.empty() ? "a limit of the system or of its control group" : text;
}

}  // namespace heed
