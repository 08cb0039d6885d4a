// Operations over whole arenas: the optimizer step, the gradient norm, the check for non-finite
// values. All are limited by memory bandwidth, so each reads and writes every element once.
#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/operand_checks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizer.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <atomic>
#include <cmath>
#include <vector>

#include "kernels/cpu/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

void UpdateRange(const AdamWState<float>& state, const AdamWStep<float>& step, float correction1,
                 float correction2, std::size_t begin, std::size_t count) {
  const Floats d;
  float* const parameters = state.parameters.data() + begin;
  const float* const gradients = state.gradients.data() + begin;
  float* const first_moment = state.first_moment.data() + begin;
  float* const second_moment = state.second_moment.data() + begin;
  const Float gradient_scale = hn::Set(d, step.gradient_scale);
  const Float beta1 = hn::Set(d, step.beta1), beta2 = hn::Set(d, step.beta2);
  const Float rest1 = hn::Set(d, 1.0F - step.beta1), rest2 = hn::Set(d, 1.0F - step.beta2);
  const Float unbias1 = hn::Set(d, 1.0F / correction1), unbias2 = hn::Set(d, 1.0F / correction2);
  const Float epsilon = hn::Set(d, step.epsilon);
  const Float weight_decay = hn::Set(d, step.weight_decay);
  const Float learning_rate = hn::Set(d, step.learning_rate);
  ForEachVector(count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    const Float gradient = hn::Mul(load(gradients), gradient_scale);
    const Float parameter = load(parameters);
    const Float first = hn::MulAdd(beta1, load(first_moment), hn::Mul(rest1, gradient));
    const Float second =
        hn::MulAdd(beta2, load(second_moment), hn::Mul(hn::Mul(rest2, gradient), gradient));
    const Float deviation = hn::Add(hn::Sqrt(hn::Mul(second, unbias2)), epsilon);
    const Float update = hn::Div(hn::Mul(first, unbias1), deviation);
    const Float change = hn::MulAdd(weight_decay, parameter, update);
    store(first, first_moment);
    store(second, second_moment);
    store(hn::NegMulAdd(learning_rate, change, parameter), parameters);
  });
}

#if HWY_HAVE_FLOAT64
double SumOfSquares(const float* x, std::size_t count) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, hn::ScalableTag<double>> half;  // as many floats as doubles fit
  const std::size_t lanes = hn::Lanes(dd);
  hn::Vec<hn::ScalableTag<double>> sums[4] = {hn::Zero(dd), hn::Zero(dd), hn::Zero(dd),
                                              hn::Zero(dd)};
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    Unroll<4>([&](auto r) HEED_INLINE_LAMBDA {
      const auto value = hn::PromoteTo(dd, hn::LoadU(half, x + i + r * lanes));
      sums[r] = hn::MulAdd(value, value, sums[r]);
    });
  }
  double rest = 0.0;
  for (; i < count; ++i) rest += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const auto sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(dd, sum)) + rest;
}
#else
// In the order of vectors of two.
double SumOfSquares(const float* x, std::size_t count) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (std::size_t r = 0; r < 8; ++r) {
      sums[r] += static_cast<double>(x[i + r]) * static_cast<double>(x[i + r]);
    }
  }
  double rest = 0.0;
  for (; i < count; ++i) rest += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const auto lane = [&](std::size_t r) {
    return (sums[r] + sums[2 + r]) + (sums[4 + r] + sums[6 + r]);
  };
  return lane(0) + lane(1) + rest;
}
#endif

// Whether every exponent is below that of infinity and NaN.
bool AllFinite(const float* x, std::size_t count) {
  const hn::RebindToSigned<Floats> di;
  auto largest = hn::Zero(di);
  ForEachVector(count, [&](std::size_t, auto load, auto) HEED_INLINE_LAMBDA {
    largest = hn::Max(largest, hn::BitCast(di, hn::Abs(load(x))));
  });
  return hn::AllTrue(di, hn::Lt(largest, hn::Set(di, 0x7F800000)));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(UpdateRange);
HWY_EXPORT(SumOfSquares);
HWY_EXPORT(AllFinite);

namespace {

// Pieces of a fixed size, so that sums do not depend on the number of threads.
constexpr std::int64_t piece = 65536;

std::int64_t pieces(std::size_t size) {
  return (static_cast<std::int64_t>(size) + piece - 1) / piece;
}

std::span<const float> piece_of(std::span<const float> x, std::int64_t index) {
  const std::size_t begin = static_cast<std::size_t>(index * piece);
  return x.subspan(begin, std::min(x.size() - begin, static_cast<std::size_t>(piece)));
}

}  // namespace

void cpu::adamw_step(const AdamWState<float>& state, const AdamWStep<float>& step) {
  checks::adamw(state, step);
  const double count = static_cast<double>(step.step);
  const auto correction1 =
      static_cast<float>(1.0 - std::pow(static_cast<double>(step.beta1), count));
  const auto correction2 =
      static_cast<float>(1.0 - std::pow(static_cast<double>(step.beta2), count));
  const std::int64_t size = static_cast<std::int64_t>(state.parameters.size());
  parallel_ranges((size + 15) / 16, 512, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(UpdateRange)
    (state, step, correction1, correction2, static_cast<std::size_t>(begin * 16),
     static_cast<std::size_t>(std::min(end * 16, size) - begin * 16));
  });
}

double cpu::squared_norm(std::span<const float> x) {
  thread_local std::vector<double> sums;
  sums.assign(static_cast<std::size_t>(pieces(x.size())), 0.0);
  double* const results = sums.data();
  parallel_ranges(pieces(x.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::span<const float> part = piece_of(x, i);
      results[i] = HWY_DYNAMIC_DISPATCH(SumOfSquares)(part.data(), part.size());
    }
  });
  double total = 0.0;
  for (double sum : sums) total += sum;
  return total;
}

bool cpu::all_finite(std::span<const float> x) {
  std::atomic<bool> finite = true;
  parallel_ranges(pieces(x.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end && finite.load(std::memory_order_relaxed); ++i) {
      const std::span<const float> part = piece_of(x, i);
      if (!HWY_DYNAMIC_DISPATCH(AllFinite)(part.data(), part.size())) {
        finite.store(false, std::memory_order_relaxed);
      }
    }
  });
  return finite.load();
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
