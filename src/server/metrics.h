// The server's counters, and durations by route and status as histograms, in Prometheus's text
// format.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace heed::server {

class DurationHistogram {
 public:
  // Upper bounds in seconds; the last bucket, +Inf, has none.
  static constexpr std::array<double, 17> bounds{
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600};

  void observe(const std::string& route, int status, double seconds);

  // Prometheus text: cumulative buckets, sum and count of every route and status observed.
  std::string text(const std::string& name, const std::string& help) const;

 private:
  struct Series {
    std::array<std::int64_t, bounds.size() + 1> counts{};  // each duration in one bucket
    double sum = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, Series> series_;
};

// Measures the time from its construction to the first token of a reply. Its destructor records it
// if there was a token and the reply was successful.
class FirstTokenTimer {
 public:
  FirstTokenTimer(DurationHistogram& histogram, const char* route)
      : histogram_(histogram), route_(route) {}
  ~FirstTokenTimer();
  FirstTokenTimer(const FirstTokenTimer&) = delete;
  FirstTokenTimer& operator=(const FirstTokenTimer&) = delete;

  void token_arrived();                // later ones change nothing
  void accept() { accepted_ = true; }  // the reply's status is 200

 private:
  DurationHistogram& histogram_;
  const char* const route_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<double> seconds_;
  bool accepted_ = false;
};

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
