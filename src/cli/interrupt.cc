#include "cli/interrupt.h"

#include <time.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "base/files.h"

namespace heed::cli {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<bool> is_hung_up{false};               // by SIGHUP, and no other signal since
std::atomic<bool> is_watched{false};               // whether work looks at `interrupted`
std::atomic<std::int64_t> interrupted_at{0};       // milliseconds
std::atomic<std::int64_t> merged_milliseconds{0};  // after the first signal
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may touch nothing else");

// Of a monotonic clock; functions that signal handlers may call.
std::int64_t milliseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

[[noreturn]] void end_at_once() {
  remove_unfinished();
  std::_Exit(interrupted_exit_status);
}

extern "C" void on_interrupt(int) {
  const std::int64_t now = milliseconds_now();
  const bool is_second = interrupted.exchange(true) && !is_hung_up.exchange(false);
  if (is_watched && !is_second) {
    interrupted_at = now;
    return;
  }
  const bool is_the_same = is_watched && now - interrupted_at < merged_milliseconds;
  if (!is_the_same) end_at_once();
}

// A terminal that closes: shells and the system may send it several times, and SIGTERM beside it.
extern "C" void on_hangup(int) {
  if (!is_watched) end_at_once();
  if (!interrupted.exchange(true)) is_hung_up = true;
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  if (std::signal(SIGHUP, on_hangup) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // nohup
}

StopFlag interrupt_flag() {
  is_watched = true;
  return &interrupted;
}

void merge_signals() { merged_milliseconds = 1000; }

void let_large_writes_fail() { std::signal(SIGXFSZ, SIG_IGN); }

void clear_interrupt() {
  interrupted = false;
  is_hung_up = false;
}

}  // namespace heed::cli
