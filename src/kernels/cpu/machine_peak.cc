#include "kernels/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/machine_peak.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// Twelve independent chains hide the latency of the multiply-add: latency 4 (5 at most) times two
// units is 8 (10) in flight. `scale` and `offset` come from outside so that no compiler can foresee
// the result, and chains start at different numbers: of equal ones compilers keep only one.
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
