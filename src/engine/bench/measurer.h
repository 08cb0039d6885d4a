// What the suites of benchmarks share: timing work for a BenchmarkReport.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/threads.h"
#include "engine/bench/benchmark.h"

namespace heed {

// How often a loop that takes `of_one` seconds is run to take as long as work that takes `seconds`:
// at least once, and for a second at most.
std::int64_t runs_as_long_as(double seconds, double of_one);

// Throws Error{out_of_memory} where `bytes` for the model `name` are not free: before the system's
// out-of-memory killer would end a process.
void require_memory(const std::string& name, std::int64_t bytes);

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

// The suites of run_benchmark(), with their usual sizes.

// 4 sequences of the whole context, one step per repeat.
BenchmarkReport measure_training(const BenchmarkOptions& options);

// One prompt of 512 tokens, or of the whole context if it is shorter.
BenchmarkReport measure_prompt(const BenchmarkOptions& options);

// 128 tokens after `context` (0) cached ones, or as many as fit the context.
BenchmarkReport measure_decoding(const BenchmarkOptions& options);

// 4,096 positions of the config's heads.
BenchmarkReport measure_attention(const BenchmarkOptions& options);

BenchmarkReport measure_tokenizer(const BenchmarkOptions& options);

// 128 pairs of 16 tokens each.
BenchmarkReport measure_translator(const BenchmarkOptions& options);

// Sets the number of threads and restores it at the end of the scope.
class ScopedThreadCount {
 public:
  explicit ScopedThreadCount(int count) : before_(thread_count()) { set_thread_count(count); }
  ~ScopedThreadCount() { set_thread_count(before_); }
  ScopedThreadCount(const ScopedThreadCount&) = delete;
  ScopedThreadCount& operator=(const ScopedThreadCount&) = delete;

 private:
  int before_;
};

}  // namespace heed
