// Children of a test, each waited for within a limit of time: one that does not end is killed,
// and the test fails.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "support/process.h"

namespace heed::testing {

// Far more than anything here takes, beside other work and under sanitizers, too.
inline constexpr std::chrono::minutes max_wait{is_sanitized ? 20 : 5};

// Whether is_so() becomes true within the time; asked every few milliseconds.
template <class Condition>
bool becomes_true(const Condition& is_so,
                  std::chrono::microseconds pause = std::chrono::milliseconds(5)) {
  const auto deadline = std::chrono::steady_clock::now() + max_wait;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

// The child's status as waitpid() gives it, and what it used. `killed` is what is killed of one
// that does not end: the child, or -group.
inline int status_of(pid_t child, rusage* usage = nullptr, pid_t killed = 0) {
  int status = 0;
  const auto has_ended = [&] { return ::wait4(child, &status, WNOHANG, usage) != 0; };
  if (!becomes_true(has_ended, std::chrono::milliseconds(1))) {
    ADD_FAILURE() << "a child has not ended after " << max_wait.count() << " minutes";
    ::kill(killed != 0 ? killed : child, SIGKILL);
    ::wait4(child, &status, 0, usage);
  }
  return status;
}

}  // namespace heed::testing
