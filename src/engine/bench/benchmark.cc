#include "engine/bench/benchmark.h"

#include <algorithm>

#include "base/error.h"
#include "engine/bench/measurer.h"
#include "kernels/machine_peak.h"

namespace heed {
namespace {

using kernels::PeakLoop;
using kernels::WeightFormat;

constexpr std::string_view suite_names[] = {"peak",      "train",     "prompt",   "decode",
                                            "attention", "tokenizer", "translate"};

BenchmarkReport measure_machine(const BenchmarkOptions& options) {
  BenchmarkReport report;
  const BenchmarkMeasurer measurer(options, options.repeats.value_or(20), report);
  return report;
}

void require_positive(const char* name, const std::optional<std::int64_t>& value,
                      std::int64_t least) {
  require(value.value_or(least) >= least, ErrorCode::invalid_argument,
          "the benchmark's {} is {}; it must be at least {}", name, value.value_or(least), least);
}

}  // namespace

std::string_view benchmark_suite_name(BenchmarkSuite suite) {
  return suite_names[static_cast<std::size_t>(suite)];
}

double median(std::vector<double> numbers) {
  check(!numbers.empty(), "the median of some numbers");
  std::ranges::sort(numbers);
  const std::size_t middle = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

std::vector<double> BenchmarkRow::times_of_other() const {
  check(against.empty() || against.size() == seconds.size(), "each repeat has its other program");
  std::vector<double> times;
  for (std::size_t i = 0; i < against.size(); ++i) {
    times.push_back(tokens / seconds[i] / against[i]);
  }
  return times;
}

double BenchmarkRow::median_seconds() const { return median(seconds); }

double BenchmarkRow::min_seconds() const { return std::ranges::min(seconds); }
double BenchmarkRow::max_seconds() const { return std::ranges::max(seconds); }

const BenchmarkCeiling* BenchmarkReport::ceiling(PeakLoop loop) const {
  const auto found = std::ranges::find(ceilings, loop, &BenchmarkCeiling::loop);
  return found == ceilings.end() ? nullptr : &*found;
}

namespace {

// What a row does a second of what a loop does.
double rate_of(const BenchmarkRow& row, PeakLoop loop) {
  return row.per_second(loop == PeakLoop::read ? row.bytes : row.flops);
}

}  // namespace

std::optional<double> BenchmarkReport::of(const BenchmarkRow& row, PeakLoop loop) const {
  const BenchmarkCeiling* const limit = ceiling(loop);
  if (limit == nullptr) return std::nullopt;
  return rate_of(row, loop) / limit->measurement.best_rate();
}

std::optional<double> BenchmarkReport::of_sustained_peak(const BenchmarkRow& row) const {
  if (!row.limit) return std::nullopt;
  const auto found = std::ranges::find(row.sustained, *row.limit, &BenchmarkCeiling::loop);
  if (found == row.sustained.end()) return std::nullopt;
  return rate_of(row, *row.limit) / found->measurement.best_rate();
}

std::optional<double> BenchmarkReport::of_peak(const BenchmarkRow& row) const {
  return row.limit ? of(row, *row.limit) : std::nullopt;
}

void BenchmarkReport::choose_limits() {
  for (BenchmarkRow& row : rows) {
    if (!row.product_limit) continue;
    const bool reads = of(row, PeakLoop::read) > of(row, *row.product_limit);
    row.limit = reads ? PeakLoop::read : *row.product_limit;
  }
}

std::optional<double> BenchmarkReport::of_dot_products(const BenchmarkRow& row) const {
  const BenchmarkCeiling* dot_products = ceiling(PeakLoop::dot_product_bf16);
  if (row.limit != PeakLoop::tile_product_bf16 || dot_products == nullptr) return std::nullopt;
  return row.per_second(row.flops) / dot_products->measurement.best_rate();
}

PeakLoop product_limit(WeightFormat dtype) {
  if (dtype == WeightFormat::f32) return PeakLoop::multiply_add_f32;
  for (const PeakLoop loop : {PeakLoop::tile_product_bf16, PeakLoop::dot_product_bf16}) {
    if (kernels::has_peak_loop(loop)) return loop;
  }
  return PeakLoop::multiply_add_f32;
}

BenchmarkReport run_benchmark(const BenchmarkOptions& options) {
  require_positive("batch", options.batch, 1);
  require_positive("context", options.context, options.suite == BenchmarkSuite::decode ? 0 : 1);
  require_positive("count", options.count, 1);
  require_positive("number of repeats", options.repeats, 1);
  require_positive("number of beams", options.beams, 1);
  switch (options.suite) {
    case BenchmarkSuite::peak: return measure_machine(options);
    case BenchmarkSuite::train: return measure_training(options);
    case BenchmarkSuite::prompt: return measure_prompt(options);
    case BenchmarkSuite::decode: return measure_decoding(options);
    case BenchmarkSuite::attention: return measure_attention(options);
    case BenchmarkSuite::tokenizer: return measure_tokenizer(options);
    case BenchmarkSuite::translate: return measure_translator(options);
  }
  check(false, "a known suite");
  return {};
}

}  // namespace heed
