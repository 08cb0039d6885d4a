#include "kernels/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/machine_peak.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve independent chains hide the latency of the multiply-add: latency 4 (5 at most) times two
// units is 8 (10) in flight.
// `scale` and `offset` come from outside so that no compiler can foresee the result.
float multiply_add_loop(long iterations, float scale, float offset) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, scale);
  const auto summand = hn::Set(d, offset);
  auto a0 = hn::Set(d, 1.0F), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0;
  auto a6 = a0, a7 = a0, a8 = a0, a9 = a0, a10 = a0, a11 = a0;
  for (long i = 0; i < iterations; ++i) {
    a0 = hn::MulAdd(a0, factor, summand);
    a1 = hn::MulAdd(a1, factor, summand);
    a2 = hn::MulAdd(a2, factor, summand);
    a3 = hn::MulAdd(a3, factor, summand);
    a4 = hn::MulAdd(a4, factor, summand);
    a5 = hn::MulAdd(a5, factor, summand);
    a6 = hn::MulAdd(a6, factor, summand);
    a7 = hn::MulAdd(a7, factor, summand);
    a8 = hn::MulAdd(a8, factor, summand);
    a9 = hn::MulAdd(a9, factor, summand);
    a10 = hn::MulAdd(a10, factor, summand);
    a11 = hn::MulAdd(a11, factor, summand);
  }
  const auto low = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(a4, a5));
  const auto high = hn::Add(hn::Add(hn::Add(a6, a7), hn::Add(a8, a9)), hn::Add(a10, a11));
  return hn::GetLane(hn::Add(low, high));
}

double flops_of_iteration() {
  const hn::ScalableTag<float> d;
  return 12.0 * 2.0 * static_cast<double>(hn::Lanes(d));
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(multiply_add_loop);
HWY_EXPORT(flops_of_iteration);

double measure_peak_flops() {
  using Clock = std::chrono::steady_clock;
  constexpr long iterations = 1'000'000;
  constexpr int runs = 10;
  volatile float scale = 0.999F;
  volatile float offset = 0.001F;
  const int threads = thread_count();
  std::vector<float> results(static_cast<std::size_t>(threads));
  double best = 0;
  for (int run = 0; run < runs; ++run) {
    const auto start = Clock::now();
    parallel_ranges(threads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t thread = begin; thread < end; ++thread) {
        results[static_cast<std::size_t>(thread)] =
            HWY_DYNAMIC_DISPATCH(multiply_add_loop)(iterations, scale, offset);
      }
    });
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double flops = HWY_DYNAMIC_DISPATCH(flops_of_iteration)() * iterations * threads;
    best = std::max(best, flops / seconds);
  }
  return best;
}

}  // namespace heed::kernels
#endif
