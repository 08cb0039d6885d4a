// Tokens that are no text, such as <|im_start|>, and those that end one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tokenizer_config.h"
#include "engine/loaded_model.h"
#include "formats/config_fields.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// The special tokens of a model's tokenizer, in ascending order; none where it has no tokenizer.
// Replies leave them out.
std::vector<std::int32_t> special_tokens(const LoadedModel& model);

// The tokens that end a text, as a model's files name them: those of read_end_tokens() and
// "eos_token" of tokenizer_config.json, in ascending order. Models that were trained on
// conversations end a turn with another token than a text. Without a tokenizer, its config is not
// read. Throws Error{corrupt_data} for files that are not as they should be.
std::vector<std::int32_t> named_end_tokens(const ConfigFields& fields,
                                           const TokenizerConfig& config, std::int64_t vocabulary,
                                           const Tokenizer* tokenizer);

}  // namespace heed
