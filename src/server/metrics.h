// What a server counts, in Prometheus's text format.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace heed::server {

struct Metrics {
  std::atomic<std::int64_t> requests{0};                // of /v1
  std::atomic<std::int64_t> requests_processing{0};     // of them, not yet answered
  std::atomic<std::int64_t> prompt_tokens{0};           // read
  std::atomic<std::int64_t> prompt_microseconds{0};     // reading them
  std::atomic<std::int64_t> predicted_tokens{0};        // drawn
  std::atomic<std::int64_t> predicted_microseconds{0};  // drawing them
  std::atomic<std::int64_t> steps{0};                   // through the model, of all sequences
  std::atomic<std::int64_t> stepped_sequences{0};       // added up over steps
  std::atomic<std::int64_t> sequences{0};               // being continued
  std::atomic<std::int64_t> sequences_waiting{0};       // for a place

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
