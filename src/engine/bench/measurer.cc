#include "engine/bench/measurer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "heed/f32_products.h"
#include "kernels/instruction_sets.h"
#include "tensor/device.h"

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::PeakLoop;

constexpr PeakLoop loops[] = {PeakLoop::multiply_add_f32, PeakLoop::dot_product_bf16,
                              PeakLoop::tile_product_bf16, PeakLoop::read};

// Many short runs, to find an undisturbed one. Runs of the read loop take longer.
constexpr int operation_runs = 30;
constexpr int read_runs = 8;
// Before each repeat.
constexpr int operation_runs_again = 5;
constexpr int read_runs_again = 2;
constexpr double max_run = 1;  // seconds of a loop that takes as long as a repeat

}  // namespace

void require_memory(const std::string& name, std::int64_t bytes) {
  constexpr double gibibyte = 1 << 30;
  const std::optional<std::int64_t> available = available_memory();
  require(!available || bytes <= *available, ErrorCode::out_of_memory,
          "'{}' takes {:.1f} GiB of memory and {:.1f} are free: choose a smaller config, batch or "
          "context",
          name, static_cast<double>(bytes) / gibibyte,
          static_cast<double>(available.value_or(0)) / gibibyte);
}

std::int64_t runs_as_long_as(double seconds, double of_one) {
  return std::max(std::lround(std::min(seconds, max_run) / of_one), 1L);
}

BenchmarkMeasurer::BenchmarkMeasurer(const BenchmarkOptions& options, int repeats,
                                     BenchmarkReport& report)
    : options_(options), repeats_(repeats), report_(report) {
  report_.suite = options.suite;
  report_.instruction_set = kernels::current_instruction_set();
  if (const Device device = default_device(); !device.is_cpu()) {
    // The loops that bound rows are the processor's.
    report_.instruction_set =
        fmt::format("{} ({}){}", device_name(device), device_description(device),
                    f32_products() == F32Products::tf32 ? ", f32 products in TF32" : "");
    return;
  }
  measure_ceilings();
  // Excludes the half GiB of the read loop from the peak memory of the workload.
  reset_peak_resident_bytes();
}

void BenchmarkMeasurer::measure_ceilings() {
  std::int64_t done = 0;
  for (const PeakLoop loop : loops) {
    show("ceilings", done++, std::ssize(loops));
    if (!kernels::has_peak_loop(loop)) continue;
    int runs = loop == PeakLoop::read ? read_runs : operation_runs;
    if (options_.suite == BenchmarkSuite::peak) runs = repeats_;
    report_.ceilings.push_back({loop, kernels::measure_peak(loop, runs)});
  }
  show("ceilings", done, std::ssize(loops));
}

namespace {

bool bounds(PeakLoop loop, const BenchmarkRow& row) {
  return row.limit == loop || row.product_limit == loop;
}

void append_runs(BenchmarkCeiling& ceiling, const kernels::PeakMeasurement& again) {
  std::vector<double>& seconds = ceiling.measurement.seconds;
  seconds.insert(seconds.end(), again.seconds.begin(), again.seconds.end());
}

}  // namespace

void BenchmarkMeasurer::measure_again(const BenchmarkRow& row) {
  for (BenchmarkCeiling& ceiling : report_.ceilings) {
    const PeakLoop loop = ceiling.loop;
    const bool beside_tiles =
        loop == PeakLoop::dot_product_bf16 && row.limit == PeakLoop::tile_product_bf16;
    if (!bounds(loop, row) && !beside_tiles) continue;
    append_runs(ceiling,
                measure(loop, loop == PeakLoop::read ? read_runs_again : operation_runs_again, 1));
  }
}

void BenchmarkMeasurer::measure_sustained(BenchmarkRow& row) {
  for (const BenchmarkCeiling& ceiling : report_.ceilings) {
    const PeakLoop loop = ceiling.loop;
    if (!bounds(loop, row)) continue;
    const auto length = runs_as_long_as(row.seconds.front(),
                                        ceiling.measurement.work / ceiling.measurement.best_rate());
    auto sustained = std::ranges::find(row.sustained, loop, &BenchmarkCeiling::loop);
    if (sustained == row.sustained.end()) {
      row.sustained.push_back({loop, measure(loop, 1, length)});
    } else {
      const double same = sustained->measurement.work / ceiling.measurement.work;
      append_runs(*sustained, measure(loop, 1, std::lround(same)));
    }
  }
}

kernels::PeakMeasurement BenchmarkMeasurer::measure(PeakLoop loop, int runs, std::int64_t length) {
  const bool reads = loop == PeakLoop::read;
  if (reads) peak_resident_ = peak_resident();
  kernels::PeakMeasurement measurement = kernels::measure_peak(loop, runs, length);
  if (reads) reset_peak_resident_bytes();
  return measurement;
}

std::int64_t BenchmarkMeasurer::peak_resident() {
  return std::max(peak_resident_, peak_resident_bytes());
}

void BenchmarkMeasurer::add(BenchmarkRow row, const std::function<void()>& work) {
  const std::string what = row.name;
  row.threads = thread_count();
  row.seconds.clear();
  const bool is_compared = options_.against && report_.rows.empty();
  for (int repeat = -1; repeat < repeats_; ++repeat) {
    show(what.c_str(), repeat + 1, repeats_ + 1);
    if (repeat >= 0) measure_again(row);
    const auto start = Clock::now();
    work();
    synchronize_accelerator();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double other = is_compared ? options_.against() : 0;
    if (repeat < 0) continue;  // the first calls warm up
    row.seconds.push_back(seconds);
    if (is_compared) row.against.push_back(other);
    measure_sustained(row);
  }
  show(what.c_str(), repeats_ + 1, repeats_ + 1);
  row.peak_resident_bytes = peak_resident();
  report_.rows.push_back(std::move(row));
}

void BenchmarkMeasurer::check_stop() const {
  require(!stop_requested(options_.stop), ErrorCode::interrupted, "the benchmark was interrupted");
}

void BenchmarkMeasurer::show(const char* what, std::int64_t done, std::int64_t total) const {
  check_stop();
  if (options_.progress) options_.progress({what, done, total});
}

}  // namespace heed
