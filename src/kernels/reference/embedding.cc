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

}  // namespace heed::kernels::reference
