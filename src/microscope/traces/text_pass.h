// A forward pass over one text with a probe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "model/gpt.h"

namespace heed {

// `position`, or the last one for −1. Throws Error{invalid_argument} for one outside the text.
std::int64_t position_in_text(std::int64_t position, std::int64_t positions);

// Throws Error{invalid_argument} for no tokens and more of them than the model's context.
void require_readable(const GptConfig& config, std::span<const std::int32_t> tokens);

// Backward goes through what an editor (null: nobody) adds, and through nothing else that it does.
// Throws Error{unsupported} where a gradient is wanted before a point that it changes otherwise.
void require_gradients_past(const Editor* editor, const GptConfig& config,
                            const std::function<bool(const Site&)>& wanted);

// Runs the model on `tokens` as one sequence and returns its activations: final_norm() is (T, C).
GptActivations run_text(const Gpt& gpt, std::span<const std::int32_t> tokens, Probe& probe,
                        Keep keep = Keep::one_block);

}  // namespace heed
