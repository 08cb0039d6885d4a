// Root mean square normalisation, row by row or head by head.
#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/cpu/rms_operands.h"
#include "kernels/cpu/scratch.h"
#include "kernels/operand_checks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rms_norm.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <cmath>

#include "kernels/cpu/row_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// One row or head; returns its reciprocal deviation.
HWY_INLINE float NormaliseRow(const float* x, std::size_t channels,
                              const NormParameters<float>& parameters, float* out) {
  const Floats d;
  const float* const gain = parameters.gain.data();
  const float square = SumRow(channels, [&](auto load) HEED_INLINE_LAMBDA {
    const Float value = load(x);
    return hn::Mul(value, value);
  });
  const float mean = square / static_cast<float>(channels);
  const float reciprocal = 1.0F / std::sqrt(mean + parameters.epsilon);
  const Float factor = hn::Set(d, reciprocal);
  ForEachVector(channels, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    store(hn::Mul(hn::Mul(load(x), factor), load(gain)), out);
  });
  return reciprocal;
}

// d_x = or += the gradient of one row or head; adds to d_gain.
template <bool accumulate>
HWY_INLINE void DifferentiateRow(const float* x, std::size_t channels, const float* gain,
                                 float reciprocal, const float* d_out, float* d_x, float* d_gain) {
  const Floats d;
  const Float factor = hn::Set(d, reciprocal);
  // out = normalised · gain
  Float product_sum = hn::Zero(d);
  ForEachVector(channels, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    const Float normalised = hn::Mul(load(x), factor);
    const Float product = hn::Mul(load(d_out), normalised);
    store(hn::Add(load(d_gain), product), d_gain);
    product_sum = hn::MulAdd(product, load(gain), product_sum);
  });
  // normalised = x / deviation: take out the component along `normalised`
  const Float mean =
      hn::Div(hn::SumOfLanes(d, product_sum), hn::Set(d, static_cast<float>(channels)));
  ForEachVector(channels, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    const Float normalised = hn::Mul(load(x), factor);
    const Float projected = hn::NegMulAdd(normalised, mean, hn::Mul(load(d_out), load(gain)));
    if constexpr (accumulate) {
      store(hn::MulAdd(factor, projected, load(d_x)), d_x);
    } else {
      store(hn::Mul(factor, projected), d_x);
    }
  });
}

// Heads [begin, end) of all rows.
void NormaliseHeads(const RmsOperands& operands, const StridedHeads<float>& out, std::int64_t begin,
                    std::int64_t end, float* reciprocal_deviation) {
  const auto channels = static_cast<std::size_t>(operands.channels);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t n = i / operands.heads, h = i % operands.heads;
    reciprocal_deviation[i] =
        NormaliseRow(operands.x.at(n, h), channels, operands.parameters, out.at(n, h));
  }
}

void DifferentiateHeads(const RmsOperands& operands, const StridedHeads<const float>& d_out,
                        const float* reciprocal_deviation, std::int64_t begin, std::int64_t end,
                        const RmsGradients& gradients) {
  const auto channels = static_cast<std::size_t>(operands.channels);
  const float* const gain = operands.parameters.gain.data();
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t n = i / operands.heads, h = i % operands.heads;
    const float* const x = operands.x.at(n, h);
    const float* const d_row = d_out.at(n, h);
    float* const d_x = gradients.x.at(n, h);
    if (gradients.accumulate) {
      DifferentiateRow<true>(x, channels, gain, reciprocal_deviation[i], d_row, d_x,
                             gradients.gain);
    } else {
      DifferentiateRow<false>(x, channels, gain, reciprocal_deviation[i], d_row, d_x,
                              gradients.gain);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(NormaliseHeads);
HWY_EXPORT(DifferentiateHeads);

void cpu::rms_norm_forward(View<const float> x, const NormParameters<float>& parameters,
                           View<float> out, View<float> reciprocal_deviation) {
  checks::rms_norm(x, parameters, out, reciprocal_deviation, "out");
  const RmsOperands operands = rms_operands(x, parameters);
  const StridedHeads<float> to(out);
  parallel_ranges(x.extent(0) * operands.heads, 16384 / operands.channels + 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    HWY_DYNAMIC_DISPATCH(NormaliseHeads)
                    (operands, to, begin, end, reciprocal_deviation.data());
                  });
}

void cpu::rms_norm_backward(View<const float> x, const NormParameters<float>& parameters,
                            View<const float> reciprocal_deviation, View<const float> d_out,
                            View<float> d_x, const NormGradients<float>& gradients) {
  checks::rms_norm_backward(x, parameters, reciprocal_deviation, d_out, d_x, gradients);
  const RmsOperands operands = rms_operands(x, parameters);
  const std::int64_t rows = x.extent(0) * operands.heads, channels = operands.channels;
  if (rows == 0) return;
  // As in layer_norm_backward: each thread has sums of its own, added up in a fixed order.
  const std::int64_t parts = std::clamp<std::int64_t>(rows * channels / 8192, 1,
                                                      std::min<std::int64_t>(thread_count(), rows));
  const std::int64_t width = (channels + 15) / 16 * 16;
  float* const sums = scratch(Scratch::shared, static_cast<std::size_t>(parts * width));
  parallel_items(parts, [&](std::int64_t part) {
    float* const mine = sums + part * width;
    std::fill_n(mine, width, 0.0F);
    HWY_DYNAMIC_DISPATCH(DifferentiateHeads)
    (operands, StridedHeads<const float>(d_out), reciprocal_deviation.data(), rows * part / parts,
     rows * (part + 1) / parts,
     {.x = StridedHeads<float>(d_x), .accumulate = x.rank() == 2, .gain = mine});
  });
  if (!gradients.gain.present()) return;
  for (std::int64_t part = 0; part < parts; ++part) {
    const float* const mine = sums + part * width;
    for (std::int64_t c = 0; c < channels; ++c) gradients.gain.data()[c] += mine[c];
  }
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
