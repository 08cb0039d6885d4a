// Backward from a logit or the loss of a text to the points of its pass.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heed/trace.h"
#include "model/transformer.h"

namespace heed {

// Backward passes an edit only where the editor (null: none) adds to a point, and that is not the
// input of a head. Throws Error{unsupported} where a gradient is wanted before any other edit.
void require_gradients_past(const Editor* editor, const Architecture& architecture,
                            const std::function<bool(const Point&)>& wanted);

// The token after each position of a text. That after the last is ignored_target or, of a target
// that is written, the end. Throws Error{unsupported} for a model that does not predict them, and
// Error{invalid_argument} for a text of which none is known.
std::vector<std::int32_t> next_tokens_of(const Architecture& architecture,
                                         std::span<const std::int32_t> tokens);

// d_unembedding_in (N, C), the gradient of the target with respect to what the unembedding reads,
// unembedding_in (N, C), for each text of the pass: of its logits, or of the mean loss of its
// `next` tokens (N), of which some may be ignored_target. The probe of `pass` may see the gradient
// of the logits. Throws Error{invalid_argument} for a position or token that does not exist.
struct TargetGradient {
  std::span<const std::int32_t> next;
  View<const float> unembedding_in;
  View<float> d_unembedding_in;
};
// Weights of all logits have the shape (B, T, V) of the longest text. Throws
// Error{invalid_argument}.
void require_weights_fit(const GradientTarget& target, const Pass& pass, std::int64_t vocabulary);
void start_gradient(const Stack& stack, const Pass& pass, const GradientTarget& target,
                    const TargetGradient& rows);

}  // namespace heed
