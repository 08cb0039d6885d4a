// Layer normalisation and root mean square normalisation, on the device.
#include "kernels/cuda/norms.h"

#include <algorithm>

#include "kernels/backends.h"
#include "kernels/cuda/launch.h"
#include "kernels/operand_checks.h"

namespace heed::kernels {
namespace {

// Rows (N, C), each as one head, or heads (N, H, C).
template <class T>
HeedHeadStrides head_strides(const View<T>& view) {
  return {view.stride(0), view.rank() == 3 ? view.stride(1) : 0};
}
template <class T>
std::int64_t heads_of(const View<T>& view) {
  return view.rank() == 3 ? view.extent(1) : 1;
}

// Enough that all multiprocessors work, and few enough that the sums of a part are little beside
// its rows.
std::int64_t parts_of(std::int64_t rows) {
  return std::clamp<std::int64_t>(rows / 8, std::min<std::int64_t>(rows, 128), 1024);
}

void launch_forward(const HeedNormForward& operands) {
  if (operands.rows == 0) return;
  static const cuda::Function<HeedNormForward> launch("norm_forward");
  launch(operands);
}

void launch_backward(HeedNormBackward operands) {
  if (operands.rows == 0) return;
  static const cuda::Function<HeedNormBackward> launch("norm_backward");
  operands.parts = parts_of(operands.rows);
  if (operands.d_gain == nullptr) {
    operands.d_bias = nullptr;
    return launch(operands);
  }
  const std::int64_t sums = operands.d_bias == nullptr ? 1 : 2;
  const cuda::Scratch<float> partial_sums(operands.parts * sums * operands.channels);
  operands.partial_sums = partial_sums.data();
  launch(operands);
}

}  // namespace

void cuda::layer_norm_forward(View<const float> x, const NormParameters<float>& parameters,
                              View<float> out, const NormStatistics<float>& statistics) {
  checks::layer_norm(x, parameters, statistics);
  checks::contiguous(out, x.shape(), "out");
  launch_forward({.rows = x.extent(0),
                  .heads = 1,
                  .channels = x.extent(1),
                  .x = x.data(),
                  .out = out.data(),
                  .x_strides = head_strides(x),
                  .out_strides = head_strides(out),
                  .gain = parameters.gain.data(),
                  .bias = parameters.bias.data(),
                  .epsilon = parameters.epsilon,
                  .mean = statistics.mean.data(),
                  .reciprocal_deviation = statistics.reciprocal_deviation.data()});
}

void cuda::layer_norm_backward(View<const float> x, const NormParameters<float>& parameters,
                               const NormStatistics<float>& statistics, View<const float> d_out,
                               View<float> d_x, const NormGradients<float>& gradients) {
  checks::layer_norm_backward(x, parameters, statistics, d_out, d_x, gradients);
  launch_backward({.rows = x.extent(0),
                   .heads = 1,
                   .channels = x.extent(1),
                   .x = x.data(),
                   .d_out = d_out.data(),
                   .d_x = d_x.data(),
                   .x_strides = head_strides(x),
                   .d_out_strides = head_strides(d_out),
                   .d_x_strides = head_strides(d_x),
                   .accumulates = 1,
                   .gain = parameters.gain.data(),
                   .mean = statistics.mean.data(),
                   .reciprocal_deviation = statistics.reciprocal_deviation.data(),
                   .d_gain = gradients.gain.data(),
                   .d_bias = gradients.bias.data()});
}

void cuda::rms_norm_forward(View<const float> x, const NormParameters<float>& parameters,
                            View<float> out, View<float> reciprocal_deviation) {
  checks::rms_norm(x, parameters, out, reciprocal_deviation, "out");
  launch_forward({.rows = reciprocal_deviation.size(),
                  .heads = heads_of(x),
                  .channels = x.extent(x.rank() - 1),
                  .x = x.data(),
                  .out = out.data(),
                  .x_strides = head_strides(x),
                  .out_strides = head_strides(out),
                  .gain = parameters.gain.data(),
                  .epsilon = parameters.epsilon,
                  .reciprocal_deviation = reciprocal_deviation.data()});
}

void cuda::rms_norm_backward(View<const float> x, const NormParameters<float>& parameters,
                             View<const float> reciprocal_deviation, View<const float> d_out,
                             View<float> d_x, const NormGradients<float>& gradients) {
  checks::rms_norm_backward(x, parameters, reciprocal_deviation, d_out, d_x, gradients);
  launch_backward({.rows = reciprocal_deviation.size(),
                   .heads = heads_of(x),
                   .channels = x.extent(x.rank() - 1),
                   .x = x.data(),
                   .d_out = d_out.data(),
                   .d_x = d_x.data(),
                   .x_strides = head_strides(x),
                   .d_out_strides = head_strides(d_out),
                   .d_x_strides = head_strides(d_x),
                   .accumulates = x.rank() == 2 ? 1 : 0,
                   .gain = parameters.gain.data(),
                   .reciprocal_deviation = reciprocal_deviation.data(),
                   .d_gain = gradients.gain.data()});
}

}  // namespace heed::kernels
