// Checks of what a caller asks of a model: its text, and a layer, head or neuron by number.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/config.h"

namespace heed {

// At least one token. `text` names the tokens in the message. Throws Error{invalid_argument}.
void require_tokens(std::span<const std::int32_t> tokens, std::string_view text = "the text");

// Between one token and as many as the model's context holds. Throws Error{invalid_argument}.
void require_text_fits(const GptConfig& config, std::span<const std::int32_t> tokens,
                       std::string_view text = "the text");

// Positions [0, positions) lie in the model's context. Throws Error{invalid_argument}.
void require_positions_fit(const GptConfig& config, std::int64_t positions);

// Return their argument. Throw Error{invalid_argument} for an index that the model does not have.
std::int64_t checked_layer(std::int64_t layer, const GptConfig& config);
std::int64_t checked_head(std::int64_t head, const GptConfig& config);
std::int64_t checked_neuron(std::int64_t neuron, const GptConfig& config);

}  // namespace heed
