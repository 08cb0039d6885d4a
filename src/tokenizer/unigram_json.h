// Unigram in tokenizer.json.
#pragma once

#include <memory>
#include <string_view>

#include "base/json.h"
#include "tokenizer/unigram_tokenizer.h"

namespace heed {

// `document` is a whole tokenizer.json whose model is of type Unigram.
std::unique_ptr<Tokenizer> read_unigram_json(const Json& document, std::string_view source);

}  // namespace heed
