// Checks of what a caller asks of a model: its text, and a layer, head or neuron by number.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/architecture.h"

namespace heed {

// At least one token. `text` names the tokens in the message. Throws Error{invalid_argument}.
void require_tokens(std::span<const std::int32_t> tokens, std::string_view text = "the text");

// Between one token and as many as the model's context holds. Throws Error{invalid_argument}.
void require_text_fits(const StackSpecification& config, std::span<const std::int32_t> tokens,
                       std::string_view text = "the text");

// Positions [0, positions) lie in the model's context. Throws Error{invalid_argument}.
void require_positions_fit(const StackSpecification& config, std::int64_t positions);

// What a model must be for something that not every model can do; `what` names it in the message.
// Throw Error{unsupported}.
//   a decoder alone: each position predicts the next token, and sees none after it
void require_predicts_next(const StackSpecification& config, std::string_view what);
//   no norms of sums, and logits from a final norm: the stream is a sum, which the logits follow
//   from
void require_stream_of_sums(const StackSpecification& config, std::string_view what);
//   the same, no norms of what branches give, and no soft cap: a logit is a sum of what heads and
//   neurons write, but for the final norm's scale
void require_sums_to_logits(const StackSpecification& config, std::string_view what);

//   an unembedding: an encoder without the head of a masked language model gives hidden states and
//   attention, and no logits
void require_unembedding(const StackSpecification& config, std::string_view what);

// Return their argument. Throw Error{invalid_argument} for an index that the model does not have.
std::int64_t checked_layer(std::int64_t layer, const StackSpecification& config);
std::int64_t checked_head(std::int64_t head, const StackSpecification& config);
std::int64_t checked_neuron(std::int64_t neuron, const StackSpecification& config);

}  // namespace heed
