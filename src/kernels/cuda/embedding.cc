// Embedding's table look-ups, on the device.
#include "kernels/cuda/embedding.h"

#include <vector>

#include "kernels/backends.h"
#include "kernels/cuda/grouped_rows.h"
#include "kernels/cuda/launch.h"
#include "kernels/operand_checks.h"

namespace heed::kernels {
namespace {

// Adds the position of each row.
void append_positions(const EmbeddingInput<float>& input, std::vector<std::int32_t>& rows) {
  const std::int64_t batch = input.tokens.extent(0), positions = input.tokens.extent(1);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < positions; ++t) {
      rows.push_back(static_cast<std::int32_t>(input.position(b, t)));
    }
  }
}

}  // namespace

void cuda::embedding_forward(const EmbeddingInput<float>& input, View<float> out) {
  checks::embedding(input, out, EmbeddingGradients<float>{}, "out");
  if (out.size() == 0) return;
  const auto tokens = input.tokens.span();
  std::vector<std::int32_t> rows(tokens.begin(), tokens.end());
  if (input.position_table.present()) append_positions(input, rows);
  const Uploaded<std::int32_t> uploaded(rows);
  static const Function<HeedEmbedding> launch("embedding_forward");
  launch({.rows = std::ssize(tokens),
          .channels = out.extent(2),
          .tokens = uploaded.data(),
          .positions = uploaded.data() + tokens.size(),
          .token_table = input.token_table.data(),
          .position_table = input.position_table.data(),
          .token_scale = input.token_scale,
          .out = out.data()});
}

void cuda::embedding_backward(const EmbeddingInput<float>& input, View<const float> d_out,
                              const EmbeddingGradients<float>& gradients) {
  checks::embedding(input, d_out, gradients, "d_out");
  if (d_out.size() == 0) return;
  const View<const float> rows =
      d_out.reshape({d_out.extent(0) * d_out.extent(1), d_out.extent(2)});
  if (gradients.position_table.present()) {
    std::vector<std::int32_t> positions;
    append_positions(input, positions);
    add_grouped_rows(rows, positions, 1.0F, gradients.position_table);
  }
  if (gradients.token_table.present()) {
    add_grouped_rows(rows, input.tokens.span(), input.token_scale, gradients.token_table);
  }
}

}  // namespace heed::kernels
