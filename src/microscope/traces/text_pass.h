// One pass over a text for the explanations, which look at it through probes of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "model/gpt.h"

namespace heed {

// `position`, or the last for −1. Throws Error{invalid_argument} for one that is not in the text.
std::int64_t position_in_text(std::int64_t position, std::int64_t positions);

// Backward passes an edit only where the editor (null: none) adds to a point, and that is not the
// input of a head. Throws Error{unsupported} where a gradient is wanted before any other edit.
void require_gradients_past(const Editor* editor, const GptConfig& config,
                            const std::function<bool(const Site&)>& wanted);

// Reads `tokens` as one sequence and returns what the pass left: final_norm() is (T, C).
GptActivations run_text(const Gpt& gpt, std::span<const std::int32_t> tokens, Probe& probe,
                        Keep keep = Keep::one_block);

}  // namespace heed
