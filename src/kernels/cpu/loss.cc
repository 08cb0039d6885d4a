// Cross-entropy, row by row.
#include "base/threads.h"
#include "kernels/kernels.h"
#include "kernels/operand_checks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/loss.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

HWY_INLINE float LargestOf(const float* row, std::size_t count) {
  const Floats d;
  const float lowest = -std::numeric_limits<float>::infinity();
  Float largest = hn::Set(d, lowest);
  ForEachVector(count, [&](std::size_t i, auto load, auto) HEED_INLINE_LAMBDA {
    const Float inside = hn::IfThenElse(hn::FirstN(d, count - i), load(row), hn::Set(d, lowest));
    largest = hn::Max(largest, inside);
  });
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

HWY_INLINE float SumOfExponentials(const float* row, std::size_t count, float maximum) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  const Float shift = hn::Set(d, maximum);
  const auto term = [&](Float x) HEED_INLINE_LAMBDA { return Exp(d, hn::Sub(x, shift)); };
  Float sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    Unroll<4>([&](auto r) HEED_INLINE_LAMBDA {
      sums[r] = hn::Add(sums[r], term(hn::LoadU(d, row + i + r * lanes)));
    });
  }
  ForEachVector(count - i, [&](std::size_t at, auto load, auto) HEED_INLINE_LAMBDA {
    const auto inside = hn::FirstN(d, count - i - at);
    sums[0] = hn::Add(sums[0], hn::IfThenElseZero(inside, term(load(row + i))));
  });
  const Float sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// log Σ exp(row), by pieces that stay in the first-level cache between their two passes: memory is
// read once. Relative error of the sum: 1.2e-7 an exponential, and rounding of about
// √(count/64)·6e-8 in partial sums.
float LogSumExp(const float* row, std::size_t size) {
  constexpr std::size_t piece = 4096;
  float maximum = -std::numeric_limits<float>::infinity(), sum = 0.0F;
  for (std::size_t i = 0; i < size; i += piece) {
    const std::size_t count = std::min(piece, size - i);
    const float before = maximum;
    maximum = std::max(maximum, LargestOf(row + i, count));
    if (before != maximum) sum *= std::exp(before - maximum);
    sum += SumOfExponentials(row + i, count, maximum);
  }
  return maximum + std::log(sum);
}

// row = scale · exp(row - normaliser)
void SoftmaxInPlace(float* row, std::size_t size, float normaliser, float scale) {
  const Floats d;
  ForEachVector(size, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    const Float probability = Exp(d, hn::Sub(load(row), hn::Set(d, normaliser)));
    store(hn::Mul(probability, hn::Set(d, scale)), row);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(LogSumExp);
HWY_EXPORT(SoftmaxInPlace);

namespace {

constexpr std::int64_t grain = 4096;  // logits a thread handles at least

std::int64_t row_grain(std::int64_t vocabulary) { return grain / vocabulary + 1; }

}  // namespace

void cross_entropy_forward(View<const float> logits, View<const std::int32_t> targets,
                           View<float> losses) {
  checks::cross_entropy(logits, targets, losses);
  const std::int64_t vocabulary = logits.extent(1);
  parallel_ranges(
      logits.extent(0), row_grain(vocabulary + 1), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t n = begin; n < end; ++n) {
          const float* const row = logits.data() + n * vocabulary;
          const std::int32_t target = targets.data()[n];
          losses.data()[n] =
              target == ignored_target
                  ? 0.0F
                  : HWY_DYNAMIC_DISPATCH(LogSumExp)(row, static_cast<std::size_t>(vocabulary)) -
                        row[target];
        }
      });
}

void cross_entropy_forward_backward(View<float> logits, View<const std::int32_t> targets,
                                    float scale, View<float> losses) {
  checks::cross_entropy(logits, targets, losses);
  const std::int64_t vocabulary = logits.extent(1);
  const std::size_t size = static_cast<std::size_t>(vocabulary);
  parallel_ranges(logits.extent(0), row_grain(vocabulary + 1),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t n = begin; n < end; ++n) {
                      float* const row = logits.data() + n * vocabulary;
                      const std::int32_t target = targets.data()[n];
                      if (target == ignored_target) {
                        losses.data()[n] = 0.0F;
                        std::fill_n(row, size, 0.0F);
                        continue;
                      }
                      // 1: loss = log Σ exp(logits) - logits[target]
                      const float normaliser = HWY_DYNAMIC_DISPATCH(LogSumExp)(row, size);
                      losses.data()[n] = normaliser - row[target];
                      // 1, undone: ∂loss/∂logits = softmax - one-hot
                      HWY_DYNAMIC_DISPATCH(SoftmaxInPlace)(row, size, normaliser, scale);
                      row[target] -= scale;
                    }
                  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
