// One pass over a text for the explanations, which look at it through probes of their own.
#pragma once

#include <cstdint>
#include <span>

#include "model/gpt.h"

namespace heed {

// Throws Error{invalid_argument} for no tokens and more of them than the model's context.
void require_readable(const GptConfig& config, std::span<const std::int32_t> tokens);

// Reads `tokens` as one sequence and returns what the pass left: final_norm() is (T, C).
GptActivations read_text(const Gpt& gpt, std::span<const std::int32_t> tokens, Probe& probe,
                         Keep keep = Keep::one_block);

}  // namespace heed
