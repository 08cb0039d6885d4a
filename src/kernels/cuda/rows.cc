// Rows of matrices, on the device.
#include "kernels/cuda/rows.h"

#include <vector>

#include "kernels/backends.h"
#include "kernels/cuda/grouped_rows.h"
#include "kernels/cuda/launch.h"
#include "kernels/element_checks.h"

namespace heed::kernels {
namespace {

using cuda::Function;
using cuda::rows_of;

template <class T>
HeedNumbers numbers_in(const View<T>& vector) {
  return {const_cast<std::remove_const_t<T>*>(vector.data()), vector.stride(0)};
}

}  // namespace

// Each row of `to` has threads of its own, which no other rows write to: the rows of each are put
// beside each other here, in their order.
void cuda::add_grouped_rows(View<const float> from, std::span<const std::int32_t> indices,
                            float factor, View<float> to) {
  if (indices.empty() || to.extent(1) == 0) return;
  std::vector<std::int32_t> next(static_cast<std::size_t>(to.extent(0)) + 1);
  for (const std::int32_t index : indices) ++next[static_cast<std::size_t>(index) + 1];
  std::vector<std::int32_t> destinations, begins;
  for (std::size_t row = 0; row + 1 < next.size(); ++row) {
    if (next[row + 1] != 0) {
      destinations.push_back(static_cast<std::int32_t>(row));
      begins.push_back(next[row]);
    }
    next[row + 1] += next[row];
  }
  const std::size_t groups = destinations.size(), count = indices.size();
  // destinations (G), begins (G + 1), order (N)
  std::vector<std::int32_t> all(2 * groups + 1 + count);
  std::int32_t* const order = all.data() + 2 * groups + 1;
  std::copy(destinations.begin(), destinations.end(), all.data());
  std::copy(begins.begin(), begins.end(), all.data() + groups);
  all[2 * groups] = static_cast<std::int32_t>(count);
  for (std::size_t n = 0; n < count; ++n) {
    order[next[static_cast<std::size_t>(indices[n])]++] = static_cast<std::int32_t>(n);
  }
  const Uploaded<std::int32_t> uploaded(all);
  static const Function<HeedGroupedRows> launch("add_grouped_rows");
  launch({.from = rows_of(from),
          .to = rows_of(to),
          .destinations = uploaded.data(),
          .begins = uploaded.data() + groups,
          .order = uploaded.data() + 2 * groups + 1,
          .factor = factor,
          .groups = static_cast<std::int64_t>(groups),
          .columns = to.extent(1)});
}

void cuda::gather_rows(View<const float> from, std::span<const std::int32_t> indices,
                       View<float> to) {
  checks::indexed_rows(from, indices, to);
  if (to.size() == 0) return;
  const Uploaded<std::int32_t> uploaded(indices);
  static const Function<HeedGather> launch("gather_rows");
  launch({.from = rows_of(from),
          .to = rows_of(to),
          .indices = uploaded.data(),
          .rows = to.extent(0),
          .columns = to.extent(1)});
}

void cuda::scatter_add_rows(View<const float> from, std::span<const std::int32_t> indices,
                            View<float> to) {
  checks::indexed_rows(to, indices, from);
  add_grouped_rows(from, indices, 1.0F, to);
}

void cuda::softmax_rows(View<const float> scores, View<float> out) {
  checks::same_rows(scores, out, "scores", "out");
  if (out.size() == 0) return;
  static const Function<HeedSoftmaxRows> launch("softmax_rows");
  launch({.scores = rows_of(scores),
          .out = rows_of(out),
          .rows = out.extent(0),
          .columns = out.extent(1)});
}

void cuda::softmax_rows_backward(View<const float> pattern, View<float> gradient) {
  checks::same_rows(pattern, gradient, "pattern", "gradient");
  if (gradient.size() == 0) return;
  static const Function<HeedSoftmaxRows> launch("softmax_rows_backward");
  launch({.scores = rows_of(pattern),
          .out = rows_of(gradient),
          .rows = gradient.extent(0),
          .columns = gradient.extent(1)});
}

void cuda::mix_rows(View<const float> pattern, View<const float> value, View<float> out) {
  checks::mixed_rows(pattern, value, out);
  if (out.size() == 0) return;
  static const Function<HeedMixRows> launch("mix_rows");
  launch({.pattern = rows_of(pattern),
          .value = rows_of(value),
          .out = rows_of(out),
          .rows = out.extent(0),
          .shared = pattern.extent(1),
          .columns = out.extent(1)});
}

void cuda::standardise_rows(const StandardisedRows& rows, View<float> out) {
  checks::standardised_rows(rows.x, rows.mean, rows.reciprocal_deviation);
  checks::same_rows(rows.x, out, "x", "out");
  if (out.size() == 0) return;
  static const Function<HeedNormRows> launch("standardise_rows");
  launch({.x = rows_of(rows.x),
          .out = rows_of(out),
          .mean = numbers_in(rows.mean),
          .reciprocal_deviation = numbers_in(rows.reciprocal_deviation),
          .rows = out.extent(0),
          .columns = out.extent(1)});
}

void cuda::standardise_rows_backward(const StandardisedRows& rows, View<const float> gain,
                                     View<const float> d_out,
                                     const StandardisedGradients& gradients) {
  checks::standardised_rows(rows.x, rows.mean, rows.reciprocal_deviation);
  checks::same_rows(rows.x, d_out, "x", "d_out");
  checks::same_rows(rows.x, gradients.rows, "x", "the gradient of rows");
  require_shape(gain, {rows.x.extent(1)}, "gain");
  require_shape(gradients.scale, {rows.x.extent(0)}, "the gradient of the scale");
  if (d_out.extent(0) == 0) return;
  static const Function<HeedNormRows> launch("standardise_rows_backward");
  launch({.x = rows_of(rows.x),
          .d_out = rows_of(d_out),
          .out = rows_of(gradients.rows),
          .mean = numbers_in(rows.mean),
          .reciprocal_deviation = numbers_in(rows.reciprocal_deviation),
          .gain = numbers_in(gain),
          .d_scale = numbers_in(gradients.scale),
          .rows = d_out.extent(0),
          .columns = d_out.extent(1)});
}

void cuda::constant_scale_norm_backward(const ConstantScaleNorm& norm, View<const float> d_out,
                                        View<float> d_x) {
  checks::same_rows(d_out, d_x, "d_out", "d_x");
  require_shape(norm.gain, {d_out.extent(1)}, "gain");
  require_shape(norm.reciprocal_deviation, {d_out.extent(0)}, "reciprocal_deviation");
  if (d_out.size() == 0) return;
  static const Function<HeedNormRows> launch("constant_scale_norm_backward");
  launch({.d_out = rows_of(d_out),
          .out = rows_of(d_x),
          .reciprocal_deviation = numbers_in(norm.reciprocal_deviation),
          .gain = numbers_in(norm.gain),
          .subtracts_mean = norm.centring == Centring::mean ? 1 : 0,
          .rows = d_out.extent(0),
          .columns = d_out.extent(1)});
}

void cuda::apply_gain(View<const float> x, const NormParameters<float>& parameters,
                      View<float> out) {
  checks::same_rows(x, out, "x", "out");
  require_shape(parameters.gain, {x.extent(1)}, "gain");
  if (parameters.bias.present()) require_shape(parameters.bias, {x.extent(1)}, "bias");
  if (out.size() == 0) return;
  static const Function<HeedNormRows> launch("apply_gain");
  launch({.x = rows_of(x),
          .out = rows_of(out),
          .gain = numbers_in(parameters.gain),
          .bias = numbers_in(parameters.bias),
          .rows = out.extent(0),
          .columns = out.extent(1)});
}

}  // namespace heed::kernels
