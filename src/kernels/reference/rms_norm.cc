#include <cmath>

#include "kernels/operand_checks.h"
#include "kernels/reference/reference.h"

namespace heed::kernels::reference {
namespace {

// Rows (N, C) as heads (N, 1, C).
template <class T>
View<T> as_heads(const View<T>& view) {
  if (view.rank() == 3) return view;
  return {view.data(), Shape{view.extent(0), 1, view.extent(1)}};
}

}  // namespace

template <class T>
void rms_norm_forward(View<const T> x, const NormParameters<T>& parameters, View<T> out,
                      View<T> reciprocal_deviation) {
  checks::rms_norm(x, parameters, out, reciprocal_deviation, "out");
  const View<const T> from = as_heads(x);
  const View<T> to = as_heads(out);
  const std::int64_t heads = from.extent(1), channels = from.extent(2);
  for (std::int64_t n = 0; n < from.extent(0); ++n) {
    for (std::int64_t h = 0; h < heads; ++h) {
      // 1: reciprocal deviation
      T square = 0;
      for (std::int64_t c = 0; c < channels; ++c) square += from(n, h, c) * from(n, h, c);
      const T reciprocal = T(1) / std::sqrt(square / T(channels) + parameters.epsilon);
      // 2: normalise and scale
      for (std::int64_t c = 0; c < channels; ++c) {
        to(n, h, c) = from(n, h, c) * reciprocal * parameters.gain(c);
      }
      reciprocal_deviation.data()[n * heads + h] = reciprocal;
    }
  }
}

template <class T>
void rms_norm_backward(View<const T> x, const NormParameters<T>& parameters,
                       View<const T> reciprocal_deviation, View<const T> d_out, View<T> d_x,
                       const NormGradients<T>& gradients) {
  checks::rms_norm_backward(x, parameters, reciprocal_deviation, d_out, d_x, gradients);
  const View<const T> from = as_heads(x), d_from = as_heads(d_out);
  const View<T> to = as_heads(d_x);
  const std::int64_t heads = from.extent(1), channels = from.extent(2);
  for (std::int64_t n = 0; n < from.extent(0); ++n) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const T reciprocal = reciprocal_deviation.data()[n * heads + h];
      // 2: out = normalised · gain
      T mean_of_product = 0;
      for (std::int64_t c = 0; c < channels; ++c) {
        const T normalised = from(n, h, c) * reciprocal;
        if (gradients.gain.present()) gradients.gain(c) += d_from(n, h, c) * normalised;
        mean_of_product += d_from(n, h, c) * parameters.gain(c) * normalised / T(channels);
      }
      // 1: normalised = x / deviation(x): a projection that takes out the component along
      // `normalised`
      for (std::int64_t c = 0; c < channels; ++c) {
        const T normalised = from(n, h, c) * reciprocal;
        const T gradient =
            reciprocal * (d_from(n, h, c) * parameters.gain(c) - normalised * mean_of_product);
        to(n, h, c) = x.rank() == 2 ? to(n, h, c) + gradient : gradient;
      }
    }
  }
}

template void rms_norm_forward<float>(View<const float>, const NormParameters<float>&, View<float>,
                                      View<float>);
template void rms_norm_forward<double>(View<const double>, const NormParameters<double>&,
                                       View<double>, View<double>);
template void rms_norm_backward<float>(View<const float>, const NormParameters<float>&,
                                       View<const float>, View<const float>, View<float>,
                                       const NormGradients<float>&);
template void rms_norm_backward<double>(View<const double>, const NormParameters<double>&,
                                        View<const double>, View<const double>, View<double>,
                                        const NormGradients<double>&);

}  // namespace heed::kernels::reference
