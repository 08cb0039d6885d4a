// Times work for a BenchmarkReport.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/benchmark.h"

namespace heed {

// How often a loop that takes `of_one` seconds is run to take as long as work that takes `seconds`:
// at least once, and for a second at most.
std::int64_t runs_as_long_as(double seconds, double of_one);

class BenchmarkMeasurer {
 public:
  // Measures the ceilings. Load models before, so that the workload follows directly.
  BenchmarkMeasurer(const BenchmarkOptions& options, int repeats, BenchmarkReport& report);

  // Adds the row with the times of `repeats` calls of `work`, after one warm-up call. Each is
  // preceded by some runs of the loops that bound the row, and followed by one that takes as long
  // as the first repeat: on a shared machine, a ceiling of a minute ago may be another's.
  void add(BenchmarkRow row, const std::function<void()>& work);

  // Throws Error{interrupted} on request; called during long workloads.
  void check_stop() const;

 private:
  void measure_ceilings();
  void measure_again(const BenchmarkRow& row);
  void measure_sustained(BenchmarkRow& row);
  kernels::PeakMeasurement measure(kernels::PeakLoop loop, int runs, std::int64_t length);
  std::int64_t peak_resident();
  void show(const char* what, std::int64_t done, std::int64_t total) const;

  const BenchmarkOptions& options_;
  int repeats_;
  BenchmarkReport& report_;
  std::int64_t peak_resident_ = 0;  // of the workload, before the last run of the read loop
};

}  // namespace heed
