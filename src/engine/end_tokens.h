// The tokens that end a text, as a model's directory names them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace heed {

// Those of read_end_tokens() and "eos_token" of tokenizer_config.json, in order: models that were
// trained on conversations end a turn with another token than a text. Throws Error{corrupt_data}
// for files that are not as they should be.
std::vector<std::int32_t> named_end_tokens(const std::filesystem::path& directory,
                                           std::int64_t vocabulary, const Tokenizer* tokenizer);

}  // namespace heed
