// Times work for a BenchmarkReport.
#pragma once

#include <functional>

#include "engine/benchmark.h"

namespace heed {

class BenchmarkMeasurer {
 public:
  // Measures the ceilings. What the work needs is best in memory already, so that nothing lies
  // between them and it.
  BenchmarkMeasurer(const BenchmarkOptions& options, int repeats, BenchmarkReport& report);

  // Adds the row with the seconds of `repeats` calls of `work`, after one that warms up.
  void add(BenchmarkRow row, const std::function<void()>& work);

  // For work that takes long: throws Error{interrupted} on request.
  void check_stop() const;

 private:
  void measure_ceilings();
  void show(const char* what, std::int64_t done, std::int64_t total) const;

  const BenchmarkOptions& options_;
  int repeats_;
  BenchmarkReport& report_;
};

}  // namespace heed
