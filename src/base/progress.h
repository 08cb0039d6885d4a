// How long work tells its caller how far it is, and how the caller stops it.
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
  std::int64_t total = 0;  // units in all; 0 when unknown
};

// Called from the working thread, often enough for a live line and seldom enough to cost nothing.
using ProgressCallback = std::function<void(const Progress&)>;

// Set to true by a signal handler or another thread to ask long work to stop at its next safe
// point. A null pointer means "never".
using StopFlag = const std::atomic<bool>*;

inline bool stop_requested(StopFlag stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

}  // namespace heed
