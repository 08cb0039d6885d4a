// The tokens that end a text, as a model's directory names them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace heed {

// All of "eos_token_id" (an id or a list) of config.json and generation_config.json, and
// "eos_token" of tokenizer_config.json: models that were trained on conversations end a turn with
// another token than a text. Ids from `vocabulary` on are left out; files that do not exist name
// none. Throws Error{corrupt_data} for files that are not as they should be.
std::vector<std::int32_t> read_end_tokens(const std::filesystem::path& directory,
                                          std::int64_t vocabulary, const Tokenizer* tokenizer);

}  // namespace heed
