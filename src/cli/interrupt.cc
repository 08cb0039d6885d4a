#include "cli/interrupt.h"

#include <csignal>
#include <cstdlib>

namespace heed::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch such");

extern "C" void on_interrupt(int) {
  if (interrupted.exchange(true)) std::_Exit(interrupted_exit_status);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

StopFlag interrupt_flag() { return &interrupted; }

}  // namespace heed::cli
