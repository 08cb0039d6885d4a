#include "kernels/machine_peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/cpu/peak_loops.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/instruction_sets.h"
#include "tensor/tensor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/machine_peak.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// Twelve independent chains hide the latency of the multiply-add: latency 4 (5 at most) times two
// units is 8 (10) in flight. `scale` and `offset` are arguments so that the compiler cannot
// precompute the result, and chains start at different numbers so that it cannot merge them.
float multiply_add_loop(long iterations, float scale, float offset) {
  const Floats d;
  const Float factor = hn::Set(d, scale), summand = hn::Set(d, offset);
  Float chains[12];
  Unroll<12>([&](auto i) HEED_INLINE_LAMBDA { chains[i] = hn::Set(d, static_cast<float>(i)); });
  for (long iteration = 0; iteration < iterations; ++iteration) {
    Unroll<12>([&](auto i)
                   HEED_INLINE_LAMBDA { chains[i] = hn::MulAdd(chains[i], factor, summand); });
  }
  Float sum = hn::Zero(d);
  Unroll<12>([&](auto i) HEED_INLINE_LAMBDA { sum = hn::Add(sum, chains[i]); });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

double flops_of_iteration() { return 12.0 * 2.0 * static_cast<double>(hn::Lanes(Floats())); }

// Reads 4·`quarter` floats, in whole cache lines, as four parallel streams, each prefetched 1 KiB
// ahead: this reaches a higher bandwidth than the hardware prefetcher alone.
float read_loop(const float* from, std::int64_t quarter) {
  constexpr std::int64_t streams = 4, ahead = 256;
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Float most[streams];
  Unroll<streams>([&](auto i) HEED_INLINE_LAMBDA { most[i] = hn::Zero(d); });
  for (std::int64_t k = 0; k < quarter; k += lanes) {
    Unroll<streams>([&](auto i) HEED_INLINE_LAMBDA {
      const float* line = from + static_cast<std::int64_t>(i) * quarter + k;
      __builtin_prefetch(line + ahead);
      most[i] = hn::Max(most[i], hn::Load(d, line));
    });
  }
  Float all = hn::Zero(d);
  Unroll<streams>([&](auto i) HEED_INLINE_LAMBDA { all = hn::Max(all, most[i]); });
  return hn::GetLane(hn::MaxOfLanes(d, all));
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(multiply_add_loop);
HWY_EXPORT(flops_of_iteration);
HWY_EXPORT(read_loop);

namespace {

constexpr std::int64_t read_unit = 4096;  // floats: threads read whole units
// Larger than any cache, so that repeated sequential reads go to memory.
constexpr std::int64_t read_bytes = std::int64_t{512} << 20;

// How often to measure, and how often the loop is repeated for each thread in one run.
struct PeakRuns {
  int count;
  std::int64_t length;
};

// Seconds of runs of body(thread) in all threads; what it returns is kept. Threads that share the
// repetitions take them from one counter, so that the fastest does most of them.
template <bool shared, class Body>
std::vector<double> time_in_all_threads(PeakRuns runs, Body&& body) {
  using Clock = std::chrono::steady_clock;
  const int threads = thread_count();
  std::vector<float> results(static_cast<std::size_t>(threads));
  std::vector<double> seconds;
  for (int run = 0; run < runs.count; ++run) {
    std::atomic<std::int64_t> left = runs.length * threads;
    const auto start = Clock::now();
    parallel_ranges(threads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t thread = begin; thread < end; ++thread) {
        for (std::int64_t i = 0; shared ? left.fetch_sub(1) > 0 : i < runs.length; ++i) {
          results[static_cast<std::size_t>(thread)] += body(thread);
        }
      }
    });
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return seconds;
}

PeakMeasurement measure_reading(PeakRuns runs) {
  Tensor<float> memory(Shape{read_bytes / 4});
  memory.fill(1.0F);  // pages never written may share one physical page
  const std::int64_t units = memory.size() / read_unit;
  const int threads = thread_count();
  const auto read_part = [&](std::int64_t thread) {
    const std::int64_t begin = units * thread / threads * read_unit;
    const std::int64_t end = units * (thread + 1) / threads * read_unit;
    return HWY_DYNAMIC_DISPATCH(read_loop)(memory.data() + begin, (end - begin) / 4);
  };
  return {.work = static_cast<double>(read_bytes * runs.length),
          .seconds = time_in_all_threads<false>(runs, read_part)};
}

// Of a loop whose iterations take `flops` operations.
template <class Loop>
PeakMeasurement measure_operations(PeakRuns runs, double flops, Loop&& loop) {
  constexpr long iterations = 1'000'000;
  return {
      .work = flops * iterations * thread_count() * static_cast<double>(runs.length),
      .seconds = time_in_all_threads<true>(runs, [&](std::int64_t) { return loop(iterations); })};
}

}  // namespace

bool has_peak_loop(PeakLoop loop) {
  if (loop == PeakLoop::dot_product_bf16) return has_bf16_products();
  if (loop == PeakLoop::tile_product_bf16) return has_tile_products();
  return true;
}

double PeakMeasurement::best_rate() const {
  check(!seconds.empty(), "a measurement has runs");
  return work / *std::min_element(seconds.begin(), seconds.end());
}

PeakMeasurement measure_peak(PeakLoop loop, int runs, std::int64_t length) {
  require(runs >= 1, ErrorCode::invalid_argument, "{} runs: expected at least one", runs);
  require(length >= 1, ErrorCode::invalid_argument, "a length of {}: expected at least 1", length);
  require(has_peak_loop(loop), ErrorCode::unsupported,
          "this machine or this build has no instructions for that loop; it has {}",
          current_instruction_set());
  const PeakRuns peak_runs{runs, length};
  volatile float scale = 0.999F;
  volatile float offset = 0.001F;
  switch (loop) {
    case PeakLoop::multiply_add_f32:
      return measure_operations(
          peak_runs, HWY_DYNAMIC_DISPATCH(flops_of_iteration)(), [&](long iterations) {
            return HWY_DYNAMIC_DISPATCH(multiply_add_loop)(iterations, scale, offset);
          });
    case PeakLoop::dot_product_bf16:
      return measure_operations(peak_runs, bf16_dot_product_flops(), [&](long iterations) {
        return bf16_dot_product_loop(iterations, offset);
      });
    case PeakLoop::tile_product_bf16: {
      // A tile takes 16 cycles: a tenth of the iterations take as long as the others' do.
      constexpr long share = 10;
      return measure_operations(peak_runs, bf16_tile_product_flops / share, [&](long iterations) {
        return bf16_tile_product_loop(iterations / share, offset);
      });
    }
    case PeakLoop::read: return measure_reading(peak_runs);
  }
  check(false, "a known loop");
  return {};
}

double measure_peak_flops() { return measure_peak(PeakLoop::multiply_add_f32, 10).best_rate(); }

}  // namespace heed::kernels
#endif
