// Durations by route and status, as a Prometheus histogram.
#pragma once

#include <array>
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

}  // namespace heed::server
