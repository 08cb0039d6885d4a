// Tokens of a model as its prompts are made, and of text alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/heed.h"

namespace heed {

// The tokens of a prompt: those of the text, after what the tokenizer begins texts with (LLaMA's
// <s>); of an encoder, between the tokens around it. Throws Error{not_found} without a tokenizer
// and Error{invalid_argument} for an empty text.
std::vector<std::int32_t> prompt_tokens(const Model& model, std::string_view text);
// Of a part of a text, such as a word that follows another one.
std::vector<std::int32_t> part_tokens(const Model& model, std::string_view text);

// The bytes of each token, possibly a part of a character; "#17" without a tokenizer.
std::vector<std::string> token_texts(const Model& model, std::span<const std::int32_t> tokens);

// What begins a text, or else separates texts, and what ends one; nothing where the tokenizer has
// none.
std::optional<std::int32_t> beginning_token(const Model& model);
std::optional<std::int32_t> end_token(const Model& model);

}  // namespace heed
