// A forward pass over one text with a probe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "heed/trace.h"
#include "model/transformer.h"

namespace heed {

// `position`, or the last one for −1. Throws Error{invalid_argument} for one outside the text.
std::int64_t position_in_text(std::int64_t position, std::int64_t positions);

// Backward passes an edit only where the editor (null: none) adds to a point, and that is not the
// input of a head. Throws Error{unsupported} where a gradient is wanted before any other edit.
void require_gradients_past(const Editor* editor, const Architecture& architecture,
                            const std::function<bool(const Point&)>& wanted);

// d_unembedding_in (T, C), the gradient of the target with respect to what the unembedding of one
// text reads, unembedding_in (T, C): of logits, or of the mean loss of the `next` tokens (T), of
// which some may be ignored_target. The probe of `pass` may see the gradient of the logits. Throws
// Error{invalid_argument} for a position or token that does not exist.
struct TargetGradient {
  std::span<const std::int32_t> next;
  View<const float> unembedding_in;
  View<float> d_unembedding_in;
};
void start_gradient(const Stack& stack, const Pass& pass, const GradientTarget& target,
                    const TargetGradient& rows);

// The tokens of a text that follow each, and ignored_target behind the last. Throws
// Error{unsupported} for a model that does not predict them, and Error{invalid_argument} for a text
// of one token.
std::vector<std::int32_t> next_tokens_of(const Transformer& gpt,
                                         std::span<const std::int32_t> tokens);

// Runs the model on `tokens` as one sequence and returns its activations: final_norm() is (T, C).
StackActivations run_text(const Transformer& gpt, std::span<const std::int32_t> tokens,
                          Probe& probe, Keep keep = Keep::one_block);

}  // namespace heed
