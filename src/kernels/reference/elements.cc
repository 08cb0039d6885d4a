#include "kernels/reference/reference.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/element_checks.h"

namespace heed::kernels::reference {
namespace {

// Element `index` of a view in the order of its shape.
template <class T>
T& element(const View<T>& view, std::int64_t index) {
  std::int64_t offset = 0;
  for (int i = view.rank() - 1; i >= 0; --i) {
    offset += index % view.extent(i) * view.stride(i);
    index /= view.extent(i);
  }
  return view.data()[offset];
}

}  // namespace

template <class T>
void fill(View<T> x, T value) {
  for (std::int64_t i = 0; i < x.size(); ++i) element(x, i) = value;
}

template <class T>
void copy(View<const T> from, View<T> to) {
  require_shape(to, from.shape(), "the copy");
  for (std::int64_t i = 0; i < from.size(); ++i) element(to, i) = element(from, i);
}

template <class T>
void scale(View<T> x, T factor) {
  for (std::int64_t i = 0; i < x.size(); ++i) element(x, i) = factor * element(x, i);
}

template <class T>
void accumulate(View<const T> from, View<T> to, T factor) {
  require_shape(to, from.shape(), "the sum");
  for (std::int64_t i = 0; i < from.size(); ++i) element(to, i) += factor * element(from, i);
}

template <class T>
void subtract(View<const T> x, View<const T> y, View<T> out) {
  require_shape(y, x.shape(), "y");
  require_shape(out, x.shape(), "out");
  for (std::int64_t i = 0; i < x.size(); ++i) element(out, i) = element(x, i) - element(y, i);
}

template <class T>
void reciprocal(View<const T> x, View<T> out) {
  require_shape(out, x.shape(), "out");
  for (std::int64_t i = 0; i < x.size(); ++i) element(out, i) = T(1) / element(x, i);
}

template <class T>
bool equal_bits(View<const T> x, View<const T> y) {
  require_shape(y, x.shape(), "y");
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (std::memcmp(&element(x, i), &element(y, i), sizeof(T)) != 0) return false;
  }
  return true;
}

template <class T>
double sum(View<const T> x, double start) {
  checks::rank(x, 1, "x");
  for (std::int64_t i = 0; i < x.size(); ++i) start += static_cast<double>(element(x, i));
  return start;
}

template <class T>
void gather_rows(View<const T> from, std::span<const std::int32_t> indices, View<T> to) {
  checks::indexed_rows(from, indices, to);
  for (std::int64_t n = 0; n < to.extent(0); ++n) {
    const std::int64_t row = indices[static_cast<std::size_t>(n)];
    for (std::int64_t c = 0; c < to.extent(1); ++c) to(n, c) = from(row, c);
  }
}

template <class T>
void scatter_add_rows(View<const T> from, std::span<const std::int32_t> indices, View<T> to) {
  checks::indexed_rows(to, indices, from);
  for (std::int64_t n = 0; n < from.extent(0); ++n) {
    const std::int64_t row = indices[static_cast<std::size_t>(n)];
    for (std::int64_t c = 0; c < from.extent(1); ++c) to(row, c) += from(n, c);
  }
}

template <class T>
void softmax_rows(View<const T> scores, View<T> out) {
  checks::same_rows(scores, out, "scores", "out");
  for (std::int64_t n = 0; n < scores.extent(0); ++n) {
    T largest = -std::numeric_limits<T>::infinity();
    for (std::int64_t s = 0; s < scores.extent(1); ++s) largest = std::max(largest, scores(n, s));
    const bool is_masked = largest == -std::numeric_limits<T>::infinity();
    double total = 0;
    for (std::int64_t s = 0; s < scores.extent(1); ++s) {
      out(n, s) = is_masked ? T(0) : std::exp(scores(n, s) - largest);
      total += static_cast<double>(out(n, s));
    }
    for (std::int64_t s = 0; s < scores.extent(1); ++s) {
      if (!is_masked) out(n, s) = static_cast<T>(static_cast<double>(out(n, s)) / total);
    }
  }
}

template <class T>
void softmax_rows_backward(View<const T> pattern, View<T> gradient) {
  checks::same_rows(pattern, gradient, "pattern", "gradient");
  for (std::int64_t n = 0; n < pattern.extent(0); ++n) {
    double total = 0;
    for (std::int64_t s = 0; s < pattern.extent(1); ++s) {
      total += static_cast<double>(pattern(n, s) * gradient(n, s));
    }
    for (std::int64_t s = 0; s < pattern.extent(1); ++s) {
      gradient(n, s) = pattern(n, s) * (gradient(n, s) - static_cast<T>(total));
    }
  }
}

template <class T>
void mix_rows(View<const T> pattern, View<const T> value, View<T> out) {
  checks::mixed_rows(pattern, value, out);
  for (std::int64_t n = 0; n < out.extent(0); ++n) {
    for (std::int64_t d = 0; d < out.extent(1); ++d) {
      double total = 0;
      for (std::int64_t s = 0; s < pattern.extent(1); ++s) {
        if (pattern(n, s) == T(0)) continue;
        total += static_cast<double>(pattern(n, s)) * static_cast<double>(value(s, d));
      }
      out(n, d) = static_cast<T>(total);
    }
  }
}

template <class T>
void standardise_rows(View<const T> x, View<const T> mean, View<const T> reciprocal_deviation,
                      View<T> out) {
  checks::standardised_rows(x, mean, reciprocal_deviation);
  checks::same_rows(x, out, "x", "out");
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t c = 0; c < x.extent(1); ++c) {
      out(n, c) = (x(n, c) - (mean.present() ? mean(n) : T(0))) * reciprocal_deviation(n);
    }
  }
}

template <class T>
void standardise_rows_backward(const StandardisedBackward<T>& operands, View<T> d_rows,
                               View<T> d_scale) {
  const auto& [x, mean, reciprocal_deviation, gain, d_out] = operands;
  checks::standardised_rows(x, mean, reciprocal_deviation);
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    const T subtracted = mean.present() ? mean(n) : T(0);
    double total = 0;
    for (std::int64_t c = 0; c < x.extent(1); ++c) {
      d_rows(n, c) = d_out(n, c) * gain(c);
      total += static_cast<double>(d_rows(n, c) * (x(n, c) - subtracted) * reciprocal_deviation(n));
    }
    d_scale(n) = -reciprocal_deviation(n) * static_cast<T>(total);
  }
}

template <class T>
void constant_scale_norm_backward(View<const T> gain, View<const T> reciprocal_deviation,
                                  Centring centring, View<const T> d_out, View<T> d_x) {
  checks::same_rows(d_out, d_x, "d_out", "d_x");
  const std::int64_t channels = d_out.extent(1);
  for (std::int64_t n = 0; n < d_out.extent(0); ++n) {
    double sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += static_cast<double>(d_out(n, c) * gain(c));
    const T mean =
        centring == Centring::mean ? static_cast<T>(sum / static_cast<double>(channels)) : T(0);
    for (std::int64_t c = 0; c < channels; ++c) {
      d_x(n, c) += (d_out(n, c) * gain(c) - mean) * reciprocal_deviation(n);
    }
  }
}

template <class T>
void apply_gain(View<const T> x, const NormParameters<T>& parameters, View<T> out) {
  checks::same_rows(x, out, "x", "out");
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t c = 0; c < x.extent(1); ++c) {
      out(n, c) = x(n, c) * parameters.gain(c);
      if (parameters.bias.present()) out(n, c) += parameters.bias(c);
    }
  }
}

template <class T>
void sinusoids(View<T> sine, View<T> cosine) {
  checks::sinusoids(sine, cosine);
  const auto channels = static_cast<double>(sine.extent(1) + cosine.extent(1));
  const auto angle = [channels](std::int64_t t, std::int64_t i) {
    return static_cast<double>(t) / std::pow(10000.0, 2.0 * static_cast<double>(i) / channels);
  };
  for (std::int64_t t = 0; t < sine.extent(0); ++t) {
    for (std::int64_t i = 0; i < sine.extent(1); ++i) {
      sine(t, i) = static_cast<T>(std::sin(angle(t, i)));
    }
    for (std::int64_t i = 0; i < cosine.extent(1); ++i) {
      cosine(t, i) = static_cast<T>(std::cos(angle(t, i)));
    }
  }
}

template <class T>
void rotary_angles(std::span<const std::int64_t> positions, View<const double> frequencies,
                   double magnitude, View<T> cosine, View<T> sine) {
  checks::rotary_angles(positions, frequencies, cosine, sine);
  for (std::int64_t n = 0; n < cosine.extent(0); ++n) {
    for (std::int64_t i = 0; i < cosine.extent(1); ++i) {
      const double angle =
          static_cast<double>(positions[static_cast<std::size_t>(n)]) * frequencies(0, i);
      cosine(n, i) = static_cast<T>(magnitude * std::cos(angle));
      sine(n, i) = static_cast<T>(magnitude * std::sin(angle));
    }
  }
}

template <class T>
void cross_entropy_piece_losses(const VocabularySums<T>& sums, std::int64_t vocabulary,
                                View<const std::int32_t> targets, View<T> losses,
                                const LabelSmoothing<T>& smoothing) {
  checks::piece_losses(sums, targets, losses, smoothing);
  for (std::int64_t n = 0; n < targets.extent(0); ++n) {
    losses(n) = T(0);
    T mean = T(0);
    if (targets(n) != ignored_target) {
      losses(n) = sums.normaliser(n) - sums.target_logit(n);
      if (sums.logit_sum.present()) {
        mean = sums.normaliser(n) - sums.logit_sum(n) / static_cast<T>(vocabulary);
      }
    }
    if (!smoothing.losses.present()) continue;
    smoothing.losses(n) = smoothing.rate == T(0)
                              ? losses(n)
                              : (T(1) - smoothing.rate) * losses(n) + smoothing.rate * mean;
  }
}

#define HEED_INSTANTIATE(T)                                                                     \
  template void fill<T>(View<T>, T);                                                            \
  template void copy<T>(View<const T>, View<T>);                                                \
  template void scale<T>(View<T>, T);                                                           \
  template void accumulate<T>(View<const T>, View<T>, T);                                       \
  template void subtract<T>(View<const T>, View<const T>, View<T>);                             \
  template void reciprocal<T>(View<const T>, View<T>);                                          \
  template bool equal_bits<T>(View<const T>, View<const T>);                                    \
  template double sum<T>(View<const T>, double);                                                \
  template void gather_rows<T>(View<const T>, std::span<const std::int32_t>, View<T>);          \
  template void scatter_add_rows<T>(View<const T>, std::span<const std::int32_t>, View<T>);     \
  template void softmax_rows<T>(View<const T>, View<T>);                                        \
  template void softmax_rows_backward<T>(View<const T>, View<T>);                               \
  template void mix_rows<T>(View<const T>, View<const T>, View<T>);                             \
  template void standardise_rows<T>(View<const T>, View<const T>, View<const T>, View<T>);      \
  template void standardise_rows_backward<T>(const StandardisedBackward<T>&, View<T>, View<T>); \
  template void constant_scale_norm_backward<T>(View<const T>, View<const T>, Centring,         \
                                                View<const T>, View<T>);                        \
  template void apply_gain<T>(View<const T>, const NormParameters<T>&, View<T>);                \
  template void sinusoids<T>(View<T>, View<T>);                                                 \
  template void rotary_angles<T>(std::span<const std::int64_t>, View<const double>, double,     \
                                 View<T>, View<T>);                                             \
  template void cross_entropy_piece_losses<T>(const VocabularySums<T>&, std::int64_t,           \
                                              View<const std::int32_t>, View<T>,                \
                                              const LabelSmoothing<T>&);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed::kernels::reference
