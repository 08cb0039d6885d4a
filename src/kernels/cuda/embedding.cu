#include "kernels/cuda/embedding.h"

#include "kernels/cuda/for_elements.h"

namespace heed_cuda {
namespace {

// Bytes are the limit: a thread has one channel of a row, or four.
template <int group>
__global__ void __launch_bounds__(element_threads) embed(const HeedEmbedding operands) {
  const long long width = operands.channels / group;
  for (long long i = first_item(); i < operands.rows * width; i += item_step()) {
    const long long row = i / width, channel = (i - row * width) * group;
    const float* const token =
        operands.token_table + operands.tokens[row] * operands.channels + channel;
    const float* const position =
        operands.position_table == nullptr
            ? nullptr
            : operands.position_table + operands.positions[row] * operands.channels + channel;
    float* const out = operands.out + row * operands.channels + channel;
    if constexpr (group == 4) {
      float values[4], added[4] = {};
      load_quad(token, values);
      if (position != nullptr) load_quad(position, added);
      for (int j = 0; j < 4; ++j) values[j] = fmaf(operands.token_scale, values[j], added[j]);
      store_quad(values, out);
    } else {
      *out = fmaf(operands.token_scale, *token, position != nullptr ? *position : 0.0F);
    }
  }
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_embedding_forward(const HeedEmbedding* operands) {
  using namespace heed_cuda;
  const long long elements = operands->rows * operands->channels;
  if (operands->channels % 4 == 0 && is_aligned(operands->token_table) &&
      is_aligned(operands->position_table) && is_aligned(operands->out)) {
    return launch(embed<4>, blocks_for(elements / 4, element_threads), element_threads, 0,
                  *operands);
  }
  return launch(embed<1>, blocks_for(elements, element_threads), element_threads, 0, *operands);
}

}  // extern "C"
