// Progress reports of long operations, and requests to stop them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"

namespace heed {

struct Progress {
  std::string what;        // "tokenizing", "saving", ...
  std::int64_t done = 0;   // units finished
  std::int64_t total = 0;  // total units; 0 if unknown
};

// Called from the working thread, often enough for a progress line and rarely enough that its cost
// is negligible.
using ProgressCallback = std::function<void(const Progress&)>;

// Set to true by a signal handler or another thread to stop a long operation at its next safe
// point. Null if it cannot be stopped.
using StopFlag = const std::atomic<bool>*;

inline bool stop_requested(StopFlag stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

}  // namespace heed
