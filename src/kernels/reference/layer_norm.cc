#include <cmath>

#include "kernels/operand_checks.h"
#include "kernels/reference/reference.h"

namespace heed::kernels::reference {

template <class T>
void layer_norm_forward(View<const T> x, const NormParameters<T>& parameters, View<T> out,
                        const NormStatistics<T>& statistics) {
  checks::layer_norm(x, parameters, statistics);
  checks::contiguous(out, x.shape(), "out");
  const std::int64_t rows = x.extent(0), channels = x.extent(1);
  for (std::int64_t n = 0; n < rows; ++n) {
    // 1: mean
    T mean = 0;
    for (std::int64_t c = 0; c < channels; ++c) mean += x(n, c);
    mean /= T(channels);
    // 2: reciprocal deviation
    T variance = 0;
    for (std::int64_t c = 0; c < channels; ++c) variance += (x(n, c) - mean) * (x(n, c) - mean);
    variance /= T(channels);
    const T reciprocal_deviation = T(1) / std::sqrt(variance + parameters.epsilon);
    // 3: normalise, 4: scale and shift
    for (std::int64_t c = 0; c < channels; ++c) {
      const T normalised = (x(n, c) - mean) * reciprocal_deviation;
      out(n, c) = normalised * parameters.gain(c);
      if (parameters.bias.present()) out(n, c) += parameters.bias(c);
    }
    statistics.mean(n) = mean;
    statistics.reciprocal_deviation(n) = reciprocal_deviation;
  }
}

template <class T>
void layer_norm_backward(View<const T> x, const NormParameters<T>& parameters,
                         const NormStatistics<T>& statistics, View<const T> d_out, View<T> d_x,
                         const NormGradients<T>& gradients) {
  checks::layer_norm_backward(x, parameters, statistics, d_out, d_x, gradients);
  const std::int64_t rows = x.extent(0), channels = x.extent(1);
  for (std::int64_t n = 0; n < rows; ++n) {
    const T mean = statistics.mean(n), reciprocal = statistics.reciprocal_deviation(n);
    // 4: out = normalised · gain + bias
    T mean_of_gradient = 0, mean_of_product = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      const T normalised = (x(n, c) - mean) * reciprocal;
      if (gradients.gain.present()) gradients.gain(c) += d_out(n, c) * normalised;
      if (gradients.bias.present()) gradients.bias(c) += d_out(n, c);
      const T d_normalised = d_out(n, c) * parameters.gain(c);
      mean_of_gradient += d_normalised / T(channels);
      mean_of_product += d_normalised * normalised / T(channels);
    }
    // 3, 2, 1: normalised = (x - mean(x)) / deviation(x): a projection that takes out the
    // components along 1 (through the mean) and along `normalised` (through the deviation)
    for (std::int64_t c = 0; c < channels; ++c) {
      const T normalised = (x(n, c) - mean) * reciprocal;
      const T d_normalised = d_out(n, c) * parameters.gain(c);
      d_x(n, c) += reciprocal * (d_normalised - mean_of_gradient - normalised * mean_of_product);
    }
  }
}

template void layer_norm_forward<float>(View<const float>, const NormParameters<float>&,
                                        View<float>, const NormStatistics<float>&);
template void layer_norm_forward<double>(View<const double>, const NormParameters<double>&,
                                         View<double>, const NormStatistics<double>&);
template void layer_norm_backward<float>(View<const float>, const NormParameters<float>&,
                                         const NormStatistics<float>&, View<const float>,
                                         View<float>, const NormGradients<float>&);
template void layer_norm_backward<double>(View<const double>, const NormParameters<double>&,
                                          const NormStatistics<double>&, View<const double>,
                                          View<double>, const NormGradients<double>&);

}  // namespace heed::kernels::reference
