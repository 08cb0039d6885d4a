// A forward pass over one text with a probe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "heed/trace.h"
#include "model/gpt.h"

namespace heed {

// `position`, or the last one for −1. Throws Error{invalid_argument} for one outside the text.
std::int64_t position_in_text(std::int64_t position, std::int64_t positions);

// Backward passes an edit only where the editor (null: none) adds to a point, and that is not the
// input of a head. Throws Error{unsupported} where a gradient is wanted before any other edit.
void require_gradients_past(const Editor* editor, const StackSpecification& config,
                            const std::function<bool(const Point&)>& wanted);

// d_unembedding_in (T, C), the gradient of the target with respect to what the unembedding of one
// text reads, unembedding_in (T, C). The probe of `pass` may see the gradient of the logits. Throws
// Error{invalid_argument} for a position or token that does not exist.
struct TargetGradient {
  View<const float> unembedding_in;
  View<float> d_unembedding_in;
};
void start_gradient(const Gpt& gpt, std::span<const std::int32_t> tokens, const Pass& pass,
                    const GradientTarget& target, const TargetGradient& rows);

// Runs the model on `tokens` as one sequence and returns its activations: final_norm() is (T, C).
GptActivations run_text(const Gpt& gpt, std::span<const std::int32_t> tokens, Probe& probe,
                        Keep keep = Keep::one_block);

}  // namespace heed
