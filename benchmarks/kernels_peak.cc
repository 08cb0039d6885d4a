#include "kernels_peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../benchmarks/kernels_peak.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Twelve independent chains: more than latency times throughput anywhere. Returns operations done.
double MultiplyAdd(long rounds, float* sink) {
  const Floats d;
  Float sum[12];
  Unroll<12>([&](auto i) HEED_INLINE_LAMBDA { sum[i] = hn::Set(d, static_cast<float>(i)); });
  const Float factor = hn::Set(d, 0.999F), addend = hn::Set(d, 0.001F);
  for (long round = 0; round < rounds; ++round) {
    Unroll<12>([&](auto i) HEED_INLINE_LAMBDA { sum[i] = hn::MulAdd(sum[i], factor, addend); });
  }
  Float total = hn::Zero(d);
  Unroll<12>([&](auto i) HEED_INLINE_LAMBDA { total = hn::Add(total, sum[i]); });
  *sink = hn::GetLane(hn::SumOfLanes(d, total));
  return 2.0 * 12.0 * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(MultiplyAdd);

double measure_peak() {
  using Clock = std::chrono::steady_clock;
  const int threads = thread_count();
  double best = 0.0;
  for (int run = 0; run < 20; ++run) {
    std::vector<double> operations(static_cast<std::size_t>(threads));
    std::vector<float> sinks(static_cast<std::size_t>(threads) * 16);
    const auto begin = Clock::now();
    parallel_items(threads, [&](std::int64_t thread) {
      operations[static_cast<std::size_t>(thread)] =
          HWY_DYNAMIC_DISPATCH(MultiplyAdd)(500000, &sinks[static_cast<std::size_t>(thread) * 16]);
    });
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    double total = 0.0;
    for (const double one : operations) total += one;
    best = std::max(best, total / seconds);
  }
  return best;
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
