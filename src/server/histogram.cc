#include "server/histogram.h"

#include <fmt/format.h>

#include <algorithm>

namespace heed::server {

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

}  // namespace heed::server
