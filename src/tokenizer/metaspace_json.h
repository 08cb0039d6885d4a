// BPE with SentencePiece's spaces in tokenizer.json.
#pragma once

#include <memory>
#include <string_view>

#include "base/json.h"
#include "tokenizer/metaspace_tokenizer.h"

namespace heed {

// Whether a document whose model is of type BPE writes spaces as U+2581.
bool is_metaspace_json(const Json& document, std::string_view source);

// Where a step of type Metaspace puts a space, and the name of that. Throws Error{unsupported} for
// another character than U+2581.
PrependScheme read_prepend_scheme(const Json& step, std::string_view source);
std::string_view prepend_scheme_name(PrependScheme scheme);

// `document` is a whole tokenizer.json of which is_metaspace_json() is true.
std::unique_ptr<Tokenizer> read_metaspace_json(const Json& document, std::string_view source);

}  // namespace heed
