// Activations and gradients of a training step, through the trace that training steps accept.
#pragma once

#include <algorithm>

#include "microscope/traces/activation_trace.h"

namespace heed::testing {

// The gradients are those of the mean loss of tokens (B, T) and their targets; nothing is updated.
inline Trace trace_step(const Transformer& transformer, View<const std::int32_t> tokens,
                        View<const std::int32_t> targets, const TraceRequest& request) {
  const std::int64_t batch = tokens.extent(0), positions = tokens.extent(1);
  ActivationTrace trace(transformer.architecture(), request,
                        {.batch = batch, .positions = positions});
  TrainingBuffers buffers(transformer.specification(), batch, positions);
  Gradients gradients(transformer.architecture());
  const std::int64_t ignored = std::ranges::count(targets.span(), kernels::ignored_target);
  const float scale = 1.0F / static_cast<float>(tokens.size() - ignored);
  transformer.loss_and_gradients(tokens, targets, {.scale = scale, .probe = &trace}, buffers,
                                 gradients);
  return trace.take();
}

}  // namespace heed::testing
