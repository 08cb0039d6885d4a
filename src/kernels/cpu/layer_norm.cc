// Layer normalisation, row by row.
#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/cpu/scratch.h"
#include "kernels/operand_checks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layer_norm.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <cmath>

#include "kernels/cpu/row_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

void NormRows(const float* x, std::int64_t channels, const NormParameters<float>& parameters,
              const NormStatistics<float>& statistics, std::int64_t begin, std::int64_t end,
              float* out) {
  const Floats d;
  const std::size_t count = static_cast<std::size_t>(channels);
  const float* const gain = parameters.gain.data();
  const float* const bias = parameters.bias.data();
  for (std::int64_t n = begin; n < end; ++n) {
    const float* const row = x + n * channels;
    float* const to = out + n * channels;
    // 1: mean
    const float mean =
        SumRow(count, [&](auto load) HEED_INLINE_LAMBDA { return load(row); }) / channels;
    // 2: reciprocal deviation
    const Float center = hn::Set(d, mean);
    const float variance = SumRow(count,
                                  [&](auto load) HEED_INLINE_LAMBDA {
                                    const Float distance = hn::Sub(load(row), center);
                                    return hn::Mul(distance, distance);
                                  }) /
                           channels;
    const float reciprocal = 1.0F / std::sqrt(variance + parameters.epsilon);
    // 3: normalise, 4: scale and shift
    const Float factor = hn::Set(d, reciprocal);
    ForEachVector(count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
      const Float normalised = hn::Mul(hn::Sub(load(row), center), factor);
      const Float scaled = bias != nullptr ? hn::MulAdd(normalised, load(gain), load(bias))
                                           : hn::Mul(normalised, load(gain));
      store(scaled, to);
    });
    statistics.mean.data()[n] = mean;
    statistics.reciprocal_deviation.data()[n] = reciprocal;
  }
}

// Adds the contribution of rows [begin, end) to d_gain and d_bias (or null).
void NormRowsBackward(const float* x, std::int64_t channels,
                      const NormParameters<float>& parameters,
                      const NormStatistics<float>& statistics, const float* d_out,
                      std::int64_t begin, std::int64_t end, float* d_x, float* d_gain,
                      float* d_bias) {
  const Floats d;
  const std::size_t count = static_cast<std::size_t>(channels);
  const float* const gain = parameters.gain.data();
  for (std::int64_t n = begin; n < end; ++n) {
    const float* const row = x + n * channels;
    const float* const d_row = d_out + n * channels;
    float* const d_to = d_x + n * channels;
    const Float center = hn::Set(d, statistics.mean.data()[n]);
    const Float factor = hn::Set(d, statistics.reciprocal_deviation.data()[n]);
    // 4: out = normalised · gain + bias
    Float gradient_sum = hn::Zero(d), product_sum = hn::Zero(d);
    ForEachVector(count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
      const Float normalised = hn::Mul(hn::Sub(load(row), center), factor);
      const Float d_here = load(d_row);
      const Float d_normalised = hn::Mul(d_here, load(gain));
      store(hn::MulAdd(d_here, normalised, load(d_gain)), d_gain);
      if (d_bias != nullptr) store(hn::Add(d_here, load(d_bias)), d_bias);
      gradient_sum = hn::Add(gradient_sum, d_normalised);
      product_sum = hn::MulAdd(d_normalised, normalised, product_sum);
    });
    // 3, 2, 1: take out the components along 1 and along `normalised`
    const Float size = hn::Set(d, static_cast<float>(channels));
    const Float mean_gradient = hn::Div(hn::SumOfLanes(d, gradient_sum), size);
    const Float mean_product = hn::Div(hn::SumOfLanes(d, product_sum), size);
    ForEachVector(count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
      const Float normalised = hn::Mul(hn::Sub(load(row), center), factor);
      const Float d_normalised = hn::Mul(load(d_row), load(gain));
      const Float projected =
          hn::NegMulAdd(normalised, mean_product, hn::Sub(d_normalised, mean_gradient));
      store(hn::MulAdd(factor, projected, load(d_to)), d_to);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(NormRows);
HWY_EXPORT(NormRowsBackward);

void cpu::layer_norm_forward(View<const float> x, const NormParameters<float>& parameters,
                             View<float> out, const NormStatistics<float>& statistics) {
  checks::layer_norm(x, parameters, statistics);
  checks::contiguous(out, x.shape(), "out");
  const std::int64_t channels = x.extent(1);
  parallel_ranges(x.extent(0), 16384 / channels + 1, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(NormRows)
    (x.data(), channels, parameters, statistics, begin, end, out.data());
  });
}

void cpu::layer_norm_backward(View<const float> x, const NormParameters<float>& parameters,
                              const NormStatistics<float>& statistics, View<const float> d_out,
                              View<float> d_x, const NormGradients<float>& gradients) {
  checks::layer_norm_backward(x, parameters, statistics, d_out, d_x, gradients);
  const std::int64_t rows = x.extent(0), channels = x.extent(1);
  if (rows == 0) return;
  // Rows are divided among the threads; each accumulates its own gradients, which are then summed
  // in a fixed order.
  const std::int64_t parts = std::clamp<std::int64_t>(rows * channels / 8192, 1,
                                                      std::min<std::int64_t>(thread_count(), rows));
  const std::int64_t width = (channels + 15) / 16 * 16;
  float* const sums = scratch(Scratch::shared, static_cast<std::size_t>(parts * 2 * width));
  parallel_items(parts, [&](std::int64_t part) {
    float* const mine = sums + part * 2 * width;
    std::fill_n(mine, 2 * width, 0.0F);
    HWY_DYNAMIC_DISPATCH(NormRowsBackward)
    (x.data(), channels, parameters, statistics, d_out.data(), rows * part / parts,
     rows * (part + 1) / parts, d_x.data(), mine,
     gradients.bias.present() ? mine + width : nullptr);
  });
  if (!gradients.gain.present()) return;
  for (std::int64_t part = 0; part < parts; ++part) {
    const float* const mine = sums + part * 2 * width;
    for (std::int64_t c = 0; c < channels; ++c) gradients.gain.data()[c] += mine[c];
    if (!gradients.bias.present()) continue;
    for (std::int64_t c = 0; c < channels; ++c) gradients.bias.data()[c] += mine[width + c];
  }
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
