// Of a module whose memory several workers share; what else runs on the machine is not known.
#include "base/thread_system.h"

namespace heed {

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  constexpr long long no_limit = -1;
  static_cast<void>(__builtin_wasm_memory_atomic_wait32(reinterpret_cast<int*>(&word),
                                                        static_cast<int>(value), no_limit));
}

void wake_one(std::atomic<std::uint32_t>& word) {
  static_cast<void>(__builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&word), 1));
}

int current_processor() { return -1; }

ThreadClock::ThreadClock(std::thread&) {}
std::optional<std::chrono::steady_clock::duration> ThreadClock::time_run() const {
  return std::nullopt;
}

std::string thread_limits() { return "the browser gave the page no more"; }

}  // namespace heed
