// Tokens that are no text, such as <|im_start|>, and those that end one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/loaded_model.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// The special tokens of a model's tokenizer, in ascending order; none where it has no tokenizer.
// Replies leave them out.
std::vector<std::int32_t> special_tokens(const LoadedModel& model);

// The tokens that end a text, as a model's directory names them: those of read_end_tokens() and
// "eos_token" of tokenizer_config.json, in ascending order. Models that were trained on
// conversations end a turn with another token than a text. Throws Error{corrupt_data}
// for files that are not as they should be.
std::vector<std::int32_t> named_end_tokens(const std::filesystem::path& directory,
                                           std::int64_t vocabulary, const Tokenizer* tokenizer);

}  // namespace heed
