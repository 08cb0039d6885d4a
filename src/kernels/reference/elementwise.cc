// Activations, dropout, addition.
#include <cmath>
#include <numbers>

#include "kernels/dropout_hash.h"
#include "kernels/operand_checks.h"
#include "kernels/reference/reference.h"

namespace heed::kernels::reference {
namespace {

// √(2/π)
template <class T>
constexpr T tanh_scale = std::numbers::sqrt2_v<T>* std::numbers::inv_sqrtpi_v<T>;

template <class T>
T activation_value(T x, Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh:
      return T(0.5) * x * (T(1) + std::tanh(tanh_scale<T> * (x + T(0.044715) * x * x * x)));
    case Activation::gelu_erf: return T(0.5) * x * (T(1) + std::erf(x / std::numbers::sqrt2_v<T>));
    case Activation::relu: return x > T(0) ? x : T(0);
    case Activation::silu: return x / (T(1) + std::exp(-x));
    case Activation::relu2: return x > T(0) ? x * x : T(0);
  }
  return x;
}

template <class T>
T activation_derivative(T x, Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh: {
      const T tanh = std::tanh(tanh_scale<T> * (x + T(0.044715) * x * x * x));
      const T inner_derivative = tanh_scale<T> * (T(1) + T(3 * 0.044715) * x * x);
      return T(0.5) * (T(1) + tanh) + T(0.5) * x * (T(1) - tanh * tanh) * inner_derivative;
    }
    case Activation::gelu_erf: {
      const T distribution = T(0.5) * (T(1) + std::erf(x / std::numbers::sqrt2_v<T>));
      const T density =
          std::exp(T(-0.5) * x * x) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
      return distribution + x * density;
    }
    case Activation::relu: return x > T(0) ? T(1) : T(0);
    case Activation::silu: {
      const T logistic = T(1) / (T(1) + std::exp(-x));
      return logistic * (T(1) + x * (T(1) - logistic));
    }
    case Activation::relu2: return x > T(0) ? T(2) * x : T(0);
  }
  return T(1);
}

}  // namespace

template <class T>
void activation_forward(View<const T> x, Activation activation, View<T> out) {
  checks::same_shape(x, out, "x", "out");
  for (std::int64_t i = 0; i < x.size(); ++i) {
    out.data()[i] = activation_value(x.data()[i], activation);
  }
}

template <class T>
void activation_backward(View<const T> x, Activation activation, View<const T> d_out, View<T> d_x) {
  checks::same_shape(x, d_out, "x", "d_out");
  checks::same_shape(x, d_x, "x", "d_x");
  for (std::int64_t i = 0; i < x.size(); ++i) {
    d_x.data()[i] = d_out.data()[i] * activation_derivative(x.data()[i], activation);
  }
}

template <class T>
void soft_cap_forward(View<const T> x, T cap, View<T> out) {
  checks::soft_cap(cap);
  checks::same_shape(x, out, "x", "out");
  for (std::int64_t i = 0; i < x.size(); ++i) out.data()[i] = cap * std::tanh(x.data()[i] / cap);
}

template <class T>
void soft_cap_backward(View<const T> out, T cap, View<const T> d_out, View<T> d_x) {
  checks::soft_cap(cap);
  checks::same_shape(out, d_out, "out", "d_out");
  checks::same_shape(out, d_x, "out", "d_x");
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const T share = out.data()[i] / cap;
    d_x.data()[i] = d_out.data()[i] * (T(1) - share * share);
  }
}

template <class T>
void gated_activation_forward(View<const T> gate, View<const T> up, Activation activation,
                              View<T> out) {
  checks::same_shape(gate, up, "gate", "up");
  checks::same_shape(gate, out, "gate", "out");
  for (std::int64_t i = 0; i < gate.size(); ++i) {
    out.data()[i] = activation_value(gate.data()[i], activation) * up.data()[i];
  }
}

template <class T>
void gated_activation_backward(View<const T> gate, View<const T> up, Activation activation,
                               View<const T> d_out, View<T> d_gate, View<T> d_up) {
  checks::gated_activation_backward(gate, up, d_out, d_gate, d_up);
  for (std::int64_t i = 0; i < gate.size(); ++i) {
    const T gradient = d_out.data()[i], x = gate.data()[i];
    d_up.data()[i] = gradient * activation_value(x, activation);
    d_gate.data()[i] = gradient * up.data()[i] * activation_derivative(x, activation);
  }
}

template <class T>
void dropout(View<const T> x, const Dropout& dropout, View<T> out) {
  checks::rank(x, 2, "x");
  checks::same_shape(x, out, "x", "out");
  checks::dropout(dropout);
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t c = 0; c < x.extent(1); ++c) {
      out(n, c) = x(n, c) * dropout_factor<T>(dropout, n, c);
    }
  }
}

template <class T>
void add(View<const T> x, View<const T> y, View<T> out) {
  checks::same_shape(x, y, "x", "y");
  checks::same_shape(x, out, "x", "out");
  for (std::int64_t i = 0; i < x.size(); ++i) out.data()[i] = x.data()[i] + y.data()[i];
}

template void activation_forward<float>(View<const float>, Activation, View<float>);
template void activation_forward<double>(View<const double>, Activation, View<double>);
template void activation_backward<float>(View<const float>, Activation, View<const float>,
                                         View<float>);
template void activation_backward<double>(View<const double>, Activation, View<const double>,
                                          View<double>);
template void soft_cap_forward<float>(View<const float>, float, View<float>);
template void soft_cap_forward<double>(View<const double>, double, View<double>);
template void soft_cap_backward<float>(View<const float>, float, View<const float>, View<float>);
template void soft_cap_backward<double>(View<const double>, double, View<const double>,
                                        View<double>);
template void gated_activation_forward<float>(View<const float>, View<const float>, Activation,
                                              View<float>);
template void gated_activation_forward<double>(View<const double>, View<const double>, Activation,
                                               View<double>);
template void gated_activation_backward<float>(View<const float>, View<const float>, Activation,
                                               View<const float>, View<float>, View<float>);
template void gated_activation_backward<double>(View<const double>, View<const double>, Activation,
                                                View<const double>, View<double>, View<double>);
template void dropout<float>(View<const float>, const Dropout&, View<float>);
template void dropout<double>(View<const double>, const Dropout&, View<double>);
template void add<float>(View<const float>, View<const float>, View<float>);
template void add<double>(View<const double>, View<const double>, View<double>);

}  // namespace heed::kernels::reference
