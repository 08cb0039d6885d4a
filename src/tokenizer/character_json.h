// The character-level tokenizer in tokenizer.json: a WordLevel model over single characters, which
// Hugging Face's `tokenizers` reads with the same results, including errors for unknown characters.
#pragma once

#include <memory>
#include <string_view>

#include "base/json.h"
#include "tokenizer/character_tokenizer.h"

namespace heed {

// `document` is a whole tokenizer.json whose model is of type WordLevel.
std::unique_ptr<Tokenizer> read_character_json(const Json& document, std::string_view source);

}  // namespace heed
