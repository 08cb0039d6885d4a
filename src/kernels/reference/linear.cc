#include "kernels/operand_checks.h"
#include "kernels/reference/reference.h"

namespace heed::kernels::reference {

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

}  // namespace heed::kernels::reference
