#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace heed::server {
namespace {

enum class Names { own, shared };  // shared: llama.cpp has it too

void append(std::string& text, Names names, const char* kind, const char* name, const char* help,
            double value) {
  for (const char* prefix : {"heed", "llamacpp"}) {
    text += fmt::format("# HELP {0}:{1} {2}\n# TYPE {0}:{1} {3}\n{0}:{1} {4}\n", prefix, name, help,
                        kind, value);
    if (names == Names::own) return;
  }
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

void DurationHistogram::observe(const std::string& route, int status, double seconds) {
  const auto bucket = static_cast<std::size_t>(
      std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin());
  const std::lock_guard lock(mutex_);
  Series& series = series_[{route, status}];
  ++series.counts[bucket];
  series.sum += seconds;
}

std::string DurationHistogram::text(const std::string& name, const std::string& help) const {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  const std::lock_guard lock(mutex_);
  for (const auto& [key, series] : series_) {
    const std::string labels = fmt::format("route=\"{}\",status=\"{}\"", key.first, key.second);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < series.counts.size(); ++i) {
      count += series.counts[i];
      const std::string bound = i < bounds.size() ? fmt::format("{}", bounds[i]) : "+Inf";
      text += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, count);
    }
    text +=
        fmt::format("{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", name, labels, series.sum, count);
  }
  return text;
}

void FirstTokenTimer::token_arrived() {
  if (seconds_) return;
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

FirstTokenTimer::~FirstTokenTimer() {
  if (accepted_ && seconds_) histogram_.observe(route_, 200, *seconds_);
}

std::string Metrics::text() const {
  const auto number = [](const std::atomic<std::int64_t>& value) {
    return static_cast<double>(value.load());
  };
  const double prompt_seconds = number(prompt_microseconds) * 1e-6;
  const double predicted_seconds = number(predicted_microseconds) * 1e-6;
  std::string text;
  append(text, Names::shared, "counter", "prompt_tokens_total", "Prompt tokens processed",
         number(prompt_tokens));
  append(text, Names::shared, "counter", "prompt_seconds_total", "Seconds spent processing prompts",
         prompt_seconds);
  append(text, Names::shared, "counter", "tokens_predicted_total", "Tokens generated",
         number(predicted_tokens));
  append(text, Names::shared, "counter", "tokens_predicted_seconds_total",
         "Seconds spent generating tokens", predicted_seconds);
  append(text, Names::shared, "counter", "n_decode_total", "Forward passes of the batch",
         number(steps));
  append(text, Names::shared, "gauge", "n_busy_slots_per_decode", "Mean sequences per forward pass",
         ratio(number(stepped_sequences), number(steps)));
  append(text, Names::shared, "gauge", "prompt_tokens_seconds",
         "Prompt tokens processed per second", ratio(number(prompt_tokens), prompt_seconds));
  append(text, Names::shared, "gauge", "predicted_tokens_seconds", "Tokens generated per second",
         ratio(number(predicted_tokens), predicted_seconds));
  append(text, Names::shared, "gauge", "requests_processing", "Sequences being continued",
         number(sequences));
  append(text, Names::shared, "gauge", "requests_deferred", "Sequences waiting for a slot",
         number(sequences_waiting));
  append(text, Names::own, "counter", "requests_total", "Requests to /v1", number(requests));
  append(text, Names::own, "gauge", "requests_open", "Requests to /v1 not yet answered",
         number(requests_processing));
  text += request_seconds.text("heed:request_duration_seconds",
                               "Seconds from a request to the end of its reply");
  text += first_token_seconds.text("heed:time_to_first_token_seconds",
                                   "Seconds from a request to the first token of its reply");
  return text;
}

}  // namespace heed::server
