// Byte-level BPE in tokenizer.json.
#pragma once

#include <memory>
#include <string_view>

#include "base/json.h"
#include "tokenizer/byte_pair_tokenizer.h"

namespace heed {

// `document` is a whole tokenizer.json whose model is of type BPE.
std::unique_ptr<Tokenizer> read_byte_pair_json(const Json& document, std::string_view source);

}  // namespace heed
