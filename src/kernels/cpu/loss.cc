// Cross-entropy, row by row.
#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/log_sum_exp.h"
#include "kernels/operand_checks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/loss.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/row_sum-inl.h"
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

// row = scale · exp(row - normaliser) - spread
void SoftmaxInPlace(float* row, std::size_t size, float normaliser, float scale, float spread) {
  const Floats d;
  ForEachVector(size, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    const Float probability = Exp(d, hn::Sub(load(row), hn::Set(d, normaliser)));
    store(hn::Sub(hn::Mul(probability, hn::Set(d, scale)), hn::Set(d, spread)), row);
  });
}

// Σ (normaliser - row): of differences, which are positive and do not cancel.
float SumOfSurprisals(const float* row, std::size_t size, float normaliser) {
  const Floats d;
  return SumRow(size, [&](auto load) HEED_INLINE_LAMBDA {
    return hn::Sub(hn::Set(d, normaliser), load(row));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(LogSumExp);
HWY_EXPORT(SoftmaxInPlace);
HWY_EXPORT(SumOfSurprisals);

namespace {

constexpr std::int64_t grain = 4096;  // logits a thread handles at least

// Calls body(row, n) for each row of logits (N, V), on all threads.
template <class Logit, class Body>
void for_each_row(const View<Logit>& logits, Body&& body) {
  const std::int64_t vocabulary = logits.extent(1);
  parallel_ranges(logits.extent(0), grain / (vocabulary + 1) + 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t n = begin; n < end; ++n) {
                      body(logits.data() + n * vocabulary, n);
                    }
                  });
}

// The losses of row n, both kinds; returns log Σ exp(logits).
struct Losses {
  View<const std::int32_t> targets;
  View<float> plain;
  const LabelSmoothing<float>& smoothing;

  bool ignored(std::int64_t n) const { return targets.data()[n] == ignored_target; }

  void clear(std::int64_t n) const {
    plain.data()[n] = 0.0F;
    if (smoothing.losses.present()) smoothing.losses.data()[n] = 0.0F;
  }

  float put(const float* row, std::size_t size, std::int64_t n) const {
    const float normaliser = HWY_DYNAMIC_DISPATCH(LogSumExp)(row, size);
    const float loss = normaliser - row[targets.data()[n]];
    plain.data()[n] = loss;
    if (smoothing.losses.present()) {
      const float rate = smoothing.rate;
      const float surprisals =
          rate == 0.0F ? 0.0F : HWY_DYNAMIC_DISPATCH(SumOfSurprisals)(row, size, normaliser);
      smoothing.losses.data()[n] =
          (1.0F - rate) * loss + rate * (surprisals / static_cast<float>(size));
    }
    return normaliser;
  }
};

// log(exp(a) + exp(b)), where a may be −∞; not finite where one of them is not.
float log_add_exp(float a, float b) {
  if (a == -std::numeric_limits<float>::infinity()) return b;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

}  // namespace

void cpu::cross_entropy_forward(View<const float> logits, View<const std::int32_t> targets,
                                View<float> losses, const LabelSmoothing<float>& smoothing) {
  checks::cross_entropy(logits, targets, losses, smoothing);
  const auto size = static_cast<std::size_t>(logits.extent(1));
  const Losses results{targets, losses, smoothing};
  for_each_row(logits, [&](const float* row, std::int64_t n) {
    if (results.ignored(n)) return results.clear(n);
    results.put(row, size, n);
  });
}

void cpu::cross_entropy_forward_backward(View<float> logits, View<const std::int32_t> targets,
                                         float scale, View<float> losses,
                                         const LabelSmoothing<float>& smoothing) {
  checks::cross_entropy(logits, targets, losses, smoothing);
  const auto size = static_cast<std::size_t>(logits.extent(1));
  const Losses results{targets, losses, smoothing};
  const float spread = scale * smoothing.rate / static_cast<float>(size);
  for_each_row(logits, [&](float* row, std::int64_t n) {
    if (results.ignored(n)) {
      results.clear(n);
      std::fill_n(row, size, 0.0F);
      return;
    }
    // 1: loss = log Σ exp(logits) - logits[target], smoothed
    const float normaliser = results.put(row, size, n);
    // 1, undone: ∂loss/∂logits = softmax - wanted
    HWY_DYNAMIC_DISPATCH(SoftmaxInPlace)(row, size, normaliser, scale, spread);
    row[targets.data()[n]] -= scale * (1.0F - smoothing.rate);
  });
}

void cpu::cross_entropy_piece_forward(View<const float> logits, const VocabularyPiece& piece,
                                      View<const std::int32_t> targets,
                                      const VocabularySums<float>& sums) {
  checks::cross_entropy_piece(logits, piece, targets, sums.normaliser, "normalisers");
  checks::contiguous(sums.target_logit, targets.shape(), "logits of targets");
  if (sums.logit_sum.present()) checks::contiguous(sums.logit_sum, targets.shape(), "sums");
  const auto size = static_cast<std::size_t>(logits.extent(1));
  if (size == 0) return;
  for_each_row(logits, [&](const float* row, std::int64_t n) {
    float& normaliser = sums.normaliser.data()[n];
    normaliser = log_add_exp(normaliser, HWY_DYNAMIC_DISPATCH(LogSumExp)(row, size));
    const std::int64_t target = targets.data()[n] - piece.first;
    if (target >= 0 && target < logits.extent(1)) sums.target_logit.data()[n] = row[target];
    if (!sums.logit_sum.present()) return;
    sums.logit_sum.data()[n] -= HWY_DYNAMIC_DISPATCH(SumOfSurprisals)(row, size, 0.0F);
  });
}

void cpu::cross_entropy_piece_backward(View<float> logits, const VocabularyPiece& piece,
                                       View<const std::int32_t> targets,
                                       View<const float> normalisers, float scale,
                                       float smoothing_rate) {
  checks::cross_entropy_piece(logits, piece, targets, normalisers, "normalisers");
  const auto size = static_cast<std::size_t>(logits.extent(1));
  const float spread = scale * smoothing_rate / static_cast<float>(piece.vocabulary);
  for_each_row(logits, [&](float* row, std::int64_t n) {
    if (targets.data()[n] == ignored_target) {
      std::fill_n(row, size, 0.0F);
      return;
    }
    HWY_DYNAMIC_DISPATCH(SoftmaxInPlace)(row, size, normalisers.data()[n], scale, spread);
    const std::int64_t target = targets.data()[n] - piece.first;
    if (target >= 0 && target < logits.extent(1)) row[target] -= scale * (1.0F - smoothing_rate);
  });
}

float log_sum_exp(std::span<const float> row) {
  return HWY_DYNAMIC_DISPATCH(LogSumExp)(row.data(), row.size());
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
