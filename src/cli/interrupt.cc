#include "cli/interrupt.h"

#include <csignal>
#include <cstdlib>

namespace heed::cli {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<bool> is_watched{false};  // whether work looks at `interrupted`
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may touch nothing else");

extern "C" void on_interrupt(int) {
  if (interrupted.exchange(true) || !is_watched) std::_Exit(interrupted_exit_status);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

StopFlag interrupt_flag() {
  is_watched = true;
  return &interrupted;
}

void clear_interrupt() { interrupted = false; }

}  // namespace heed::cli
