// The server's counters and histograms, in Prometheus's text format.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "server/histogram.h"

namespace heed::server {

struct Metrics {
  std::atomic<std::int64_t> requests{0};                // of /v1
  std::atomic<std::int64_t> requests_processing{0};     // of them, not yet answered
  std::atomic<std::int64_t> prompt_tokens{0};           // processed
  std::atomic<std::int64_t> prompt_microseconds{0};     // spent on them
  std::atomic<std::int64_t> predicted_tokens{0};        // generated
  std::atomic<std::int64_t> predicted_microseconds{0};  // spent on them
  std::atomic<std::int64_t> steps{0};                   // forward passes of the batch
  std::atomic<std::int64_t> stepped_sequences{0};       // added up over steps
  std::atomic<std::int64_t> sequences{0};               // being continued
  std::atomic<std::int64_t> sequences_waiting{0};       // for a slot of the batch
  DurationHistogram request_seconds;                    // from a request to the end of its reply
  DurationHistogram first_token_seconds;                // from a request to its reply's first token

  // Each metric under heed's prefix and, where llama.cpp has it, under llama.cpp's.
  std::string text() const;
};

// Counts a request from its beginning to its end.
class RequestCount {
 public:
  explicit RequestCount(Metrics& metrics) : metrics_(metrics) {
    ++metrics_.requests;
    ++metrics_.requests_processing;
  }
  ~RequestCount() { --metrics_.requests_processing; }
  RequestCount(const RequestCount&) = delete;
  RequestCount& operator=(const RequestCount&) = delete;

 private:
  Metrics& metrics_;
};

}  // namespace heed::server
