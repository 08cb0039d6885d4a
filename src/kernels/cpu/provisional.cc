// Stands in until the vectorised kernels land: the reference in float, products by oneDNN.
#include <oneapi/dnnl/dnnl.h>

#include "kernels/instruction_sets.h"
#include "kernels/kernels.h"
#include "kernels/operand_checks.h"
#include "kernels/reference/reference.h"

namespace heed::kernels {

void embedding_forward(const EmbeddingInput<float>& input, View<float> out) {
  reference::embedding_forward<float>(input, out);
}
void embedding_backward(const EmbeddingInput<float>& input, View<const float> d_out,
                        const EmbeddingGradients<float>& gradients) {
  reference::embedding_backward<float>(input, d_out, gradients);
}
void layer_norm_forward(View<const float> x, const NormParameters<float>& parameters,
                        View<float> out, const NormStatistics<float>& statistics) {
  reference::layer_norm_forward<float>(x, parameters, out, statistics);
}
void layer_norm_backward(View<const float> x, const NormParameters<float>& parameters,
                         const NormStatistics<float>& statistics, View<const float> d_out,
                         View<float> d_x, const NormGradients<float>& gradients) {
  reference::layer_norm_backward<float>(x, parameters, statistics, d_out, d_x, gradients);
}
void linear_forward(View<const float> x, const LinearParameters<float>& parameters,
                    View<float> out) {
  checks::linear(x, parameters.weight, out, parameters.bias, "x", "out");
  const std::int64_t n = x.extent(0), i = x.extent(1), o = out.extent(1);
  if (n == 0 || o == 0) return;
  dnnl_sgemm('N', 'T', n, o, i, 1.0F, x.data(), i, parameters.weight.data(), i, 0.0F, out.data(),
             o);
  if (!parameters.bias.present()) return;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t c = 0; c < o; ++c) out(row, c) += parameters.bias(c);
  }
}
void linear_backward_input(View<const float> weight, View<const float> d_out, View<float> d_x) {
  checks::linear(d_x, weight, d_out, View<const float>{}, "d_x", "d_out");
  const std::int64_t n = d_x.extent(0), i = d_x.extent(1), o = d_out.extent(1);
  if (n == 0 || i == 0) return;
  dnnl_sgemm('N', 'N', n, i, o, 1.0F, d_out.data(), o, weight.data(), i, 0.0F, d_x.data(), i);
}
void linear_backward_parameters(View<const float> x, View<const float> d_out,
                                const LinearGradients<float>& gradients) {
  checks::linear(x, gradients.weight, d_out, gradients.bias, "x", "d_out");
  const std::int64_t n = x.extent(0), i = x.extent(1), o = d_out.extent(1);
  if (n == 0 || i == 0 || o == 0) return;
  dnnl_sgemm('T', 'N', o, i, n, 1.0F, d_out.data(), o, x.data(), i, 1.0F, gradients.weight.data(),
             i);
  if (!gradients.bias.present()) return;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t c = 0; c < o; ++c) gradients.bias(c) += d_out(row, c);
  }
}
void activation_forward(View<const float> x, Activation activation, View<float> out) {
  reference::activation_forward<float>(x, activation, out);
}
void activation_backward(View<const float> x, Activation activation, View<const float> d_out,
                         View<float> d_x) {
  reference::activation_backward<float>(x, activation, d_out, d_x);
}
void dropout(View<const float> x, const Dropout& dropout, View<float> out) {
  reference::dropout<float>(x, dropout, out);
}
void add(View<const float> x, View<const float> y, View<float> out) {
  reference::add<float>(x, y, out);
}
void cross_entropy_forward(View<const float> logits, View<const std::int32_t> targets,
                           View<float> losses) {
  reference::cross_entropy_forward<float>(logits, targets, losses);
}
void cross_entropy_forward_backward(View<float> logits, View<const std::int32_t> targets,
                                    float scale, View<float> losses) {
  reference::cross_entropy_forward_backward<float>(logits, targets, scale, losses);
}
void adamw_step(const AdamWState<float>& state, const AdamWStep<float>& step) {
  reference::adamw_step<float>(state, step);
}
double squared_norm(std::span<const float> x) { return reference::squared_norm<float>(x); }
bool all_finite(std::span<const float> x) { return reference::all_finite<float>(x); }

}  // namespace heed::kernels
