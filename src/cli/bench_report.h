// A benchmark's report for people and for programs.
#pragma once

#include "base/json.h"
#include "engine/benchmark.h"

namespace heed::cli {

void print_benchmark(const BenchmarkReport& report);
OrderedJson benchmark_json(const BenchmarkReport& report);

}  // namespace heed::cli
