// Backpropagation of one loss: how large its gradient is in the residual stream, before every block
// and at every position.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

struct LossFlow {
  double loss = 0;            // −log p(token | text up to `position`), nats
  std::vector<Point> points;  // residual_pre of every block, then residual_post of the last
  Tensor<float> norms;  // (L + 1, T): ‖∂loss/∂stream‖ at each of them; 0 after `position`
};

// One forward and one backward pass. −1 is the last position. Throws Error{invalid_argument} for a
// text that does not fit the model, a token or position that does not exist, and Error{interrupted}
// when stopped between the passes.
LossFlow loss_flow(const Transformer& gpt, std::span<const std::int32_t> tokens, std::int32_t token,
                   std::int64_t position, StopFlag stop = nullptr);

}  // namespace heed
