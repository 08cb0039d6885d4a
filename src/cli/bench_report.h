// A benchmark's report for people and for programs.
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "engine/bench/benchmark.h"

namespace heed::cli {

void print_benchmark(const BenchmarkReport& report);
// One document: a row for every workload of every report (at least one), and the properties of the
// first report at the top.
OrderedJson benchmark_json(const std::vector<BenchmarkReport>& reports);

}  // namespace heed::cli
