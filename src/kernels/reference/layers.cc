// Embedding, linear layers, norms and rotary positions as plain loops.
#include <cmath>

#include "kernels/operand_checks.h"
#include "kernels/reference/reference.h"

namespace heed::kernels::reference {

template <class T>
void embedding_forward(const EmbeddingInput<T>& input, View<T> out) {
  checks::embedding(input, out, EmbeddingGradients<T>{}, "out");
  const std::int64_t batch = out.extent(0), positions = out.extent(1), channels = out.extent(2);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < positions; ++t) {
      for (std::int64_t c = 0; c < channels; ++c) {
        // 1: the token's row
        out(b, t, c) = input.token_scale * input.token_table(input.tokens(b, t), c);
        // 2: plus the position's row
        if (input.position_table.present()) {
          out(b, t, c) += input.position_table(input.position(b, t), c);
        }
      }
    }
  }
}

template <class T>
void embedding_backward(const EmbeddingInput<T>& input, View<const T> d_out,
                        const EmbeddingGradients<T>& gradients) {
  checks::embedding(input, d_out, gradients, "d_out");
  const std::int64_t batch = d_out.extent(0), positions = d_out.extent(1);
  const std::int64_t channels = d_out.extent(2);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < positions; ++t) {
      for (std::int64_t c = 0; c < channels; ++c) {
        // 2: out += position_table[...]
        if (gradients.position_table.present()) {
          gradients.position_table(input.position(b, t), c) += d_out(b, t, c);
        }
        // 1: out = token_table[token]
        if (gradients.token_table.present()) {
          gradients.token_table(input.tokens(b, t), c) += input.token_scale * d_out(b, t, c);
        }
      }
    }
  }
}

template void embedding_forward<float>(const EmbeddingInput<float>&, View<float>);
template void embedding_forward<double>(const EmbeddingInput<double>&, View<double>);
template void embedding_backward<float>(const EmbeddingInput<float>&, View<const float>,
                                        const EmbeddingGradients<float>&);
template void embedding_backward<double>(const EmbeddingInput<double>&, View<const double>,
                                         const EmbeddingGradients<double>&);

template <class T>
void linear_forward(View<const T> x, const LinearParameters<T>& parameters, View<T> out) {
  checks::linear(x, parameters.weight, out, parameters.bias, "x", "out");
  const std::int64_t rows = x.extent(0), inputs = x.extent(1), outputs = out.extent(1);
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      T sum = parameters.bias.present() ? parameters.bias(o) : T(0);
      for (std::int64_t i = 0; i < inputs; ++i) sum += x(n, i) * parameters.weight(o, i);
      out(n, o) = sum;
    }
  }
  if (parameters.soft_cap > 0) {
    soft_cap_forward<T>(out, parameters.soft_cap, out);
  }
}

template <class T>
void linear_backward_input(View<const T> weight, View<const T> d_out, View<T> d_x) {
  checks::linear(d_x, weight, d_out, View<const T>{}, "d_x", "d_out");
  const std::int64_t rows = d_x.extent(0), inputs = d_x.extent(1), outputs = d_out.extent(1);
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t i = 0; i < inputs; ++i) {
      T sum = 0;
      for (std::int64_t o = 0; o < outputs; ++o) sum += d_out(n, o) * weight(o, i);
      d_x(n, i) = sum;
    }
  }
}

template <class T>
void linear_backward_parameters(View<const T> x, View<const T> d_out,
                                const LinearGradients<T>& gradients) {
  if (!gradients.weight.present()) return;
  checks::linear(x, gradients.weight, d_out, gradients.bias, "x", "d_out");
  const std::int64_t rows = x.extent(0), inputs = x.extent(1), outputs = d_out.extent(1);
  for (std::int64_t o = 0; o < outputs; ++o) {
    for (std::int64_t n = 0; n < rows; ++n) {
      if (gradients.bias.present()) gradients.bias(o) += d_out(n, o);
      for (std::int64_t i = 0; i < inputs; ++i) gradients.weight(o, i) += d_out(n, o) * x(n, i);
    }
  }
}

template void linear_forward<float>(View<const float>, const LinearParameters<float>&, View<float>);
template void linear_forward<double>(View<const double>, const LinearParameters<double>&,
                                     View<double>);
template void linear_backward_input<float>(View<const float>, View<const float>, View<float>);
template void linear_backward_input<double>(View<const double>, View<const double>, View<double>);
template void linear_backward_parameters<float>(View<const float>, View<const float>,
                                                const LinearGradients<float>&);
template void linear_backward_parameters<double>(View<const double>, View<const double>,
                                                 const LinearGradients<double>&);

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

namespace {

// Rotates by the angles of the table, or by the opposite ones for a `direction` of −1.
template <class T>
void rotate(const View<T>& x, const RotaryTable<T>& table, T direction) {
  checks::rotary(x, table);
  const std::int64_t pairs = table.cosine.extent(1);
  const bool halves = table.pairing == RotaryPairing::halves;
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t h = 0; h < x.extent(1); ++h) {
      for (std::int64_t i = 0; i < pairs; ++i) {
        const T cosine = table.cosine(n, i), sine = direction * table.sine(n, i);
        T& first = x(n, h, halves ? i : 2 * i);
        T& second = x(n, h, halves ? i + pairs : 2 * i + 1);
        const T rotated = first * cosine - second * sine;
        second = second * cosine + first * sine;
        first = rotated;
      }
    }
  }
}

}  // namespace

template <class T>
void rotary_forward(View<T> x, const RotaryTable<T>& table) {
  rotate(x, table, T(1));
}

template <class T>
void rotary_backward(View<T> d_x, const RotaryTable<T>& table) {
  rotate(d_x, table, T(-1));
}

template void rotary_forward<float>(View<float>, const RotaryTable<float>&);
template void rotary_forward<double>(View<double>, const RotaryTable<double>&);
template void rotary_backward<float>(View<float>, const RotaryTable<float>&);
template void rotary_backward<double>(View<double>, const RotaryTable<double>&);

}  // namespace heed::kernels::reference
