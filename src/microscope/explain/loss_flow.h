// Backpropagation of one loss: how large its gradient is in the residual stream, before every block
// and at every position.
#pragma once

#include <cstdint>
#include <vector>

#include "microscope/traces/recorded_pass.h"
#include "tensor/tensor.h"

namespace heed {

struct LossFlow {
  double loss = 0;  // −log p(token | text up to `position`), nats
  // Of the only stack, or of the encoder and the decoder, in the order of a pass.
  struct OfStack {
    StackSite site = StackSite::only;
    std::vector<Point> points;  // the stream before every block, and after the last
    Tensor<float> norms;        // (L + 1, T): ‖∂loss/∂stream‖ at each of them
  };
  std::vector<OfStack> stacks;
};

// One backward pass, from `position` of the text, or of the target (−1: the last); after it the
// gradients of the stack that predicts are 0. Throws Error{invalid_argument} for a token or
// position that does not exist, Error{unsupported} where an edit of the pass lets no gradient pass,
// and Error{interrupted} when stopped before it.
LossFlow loss_flow(const RecordedPass& pass, std::int32_t token, std::int64_t position,
                   StopFlag stop = nullptr);

}  // namespace heed
