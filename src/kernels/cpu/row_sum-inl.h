// Sums over a row, once per instruction set.

#if defined(HEED_KERNELS_CPU_ROW_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CPU_ROW_SUM_INL_H_
#undef HEED_KERNELS_CPU_ROW_SUM_INL_H_
#else
#define HEED_KERNELS_CPU_ROW_SUM_INL_H_
#endif

#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Σ of term(load) over a row, four partial sums wide.
template <class Term>
HWY_INLINE float SumRow(std::size_t count, Term&& term) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  Float sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    Unroll<4>([&](auto r) HEED_INLINE_LAMBDA {
      sums[r] = hn::Add(sums[r], term([&](const float* from) HEED_INLINE_LAMBDA {
                          return hn::LoadU(d, from + i + r * lanes);
                        }));
    });
  }
  for (; i + lanes <= count; i += lanes) {
    sums[0] = hn::Add(sums[0], term([&](const float* from)
                                        HEED_INLINE_LAMBDA { return hn::LoadU(d, from + i); }));
  }
  Float total = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  if (i < count) {
    const Float last = term([&](const float* from)
                                HEED_INLINE_LAMBDA { return LoadPartial(d, from + i, count - i); });
    total = hn::Add(total, hn::IfThenElseZero(hn::FirstN(d, count - i), last));
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
