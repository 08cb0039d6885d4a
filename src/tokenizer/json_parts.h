// Reading and writing the parts of tokenizer.json common to all kinds of tokenizers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tokenizer/vocabulary.h"

namespace heed {

// The member `key` of an object. Throws Error{corrupt_data} when there is none.
const Json& json_member(const Json& object, const char* key, std::string_view source);

// The string member `key`. Throws Error{corrupt_data} when it is absent or no string.
const std::string& json_string_member(const Json& object, const char* key, std::string_view source);

// Throws Error{unsupported} unless the member `key` is absent, null, or one of `allowed`.
void require_json_value(const Json& object, const char* key, const std::vector<Json>& allowed,
                        std::string_view source);

// The added_tokens of a document. Throws Error{unsupported} for tokens that strip the white space
// around them or match whole words only.
std::vector<AddedToken> read_added_tokens(const Json& document, std::string_view source);

// The texts of all tokens by id, from the object `vocabulary` (text to id) and added tokens that
// are not in it. Throws Error{corrupt_data} unless the ids are 0, 1, ... without gap or repetition.
std::vector<std::string> tokens_by_id(const Json& vocabulary, const std::vector<AddedToken>& added,
                                      std::string_view source);

// The text of a tokenizer.json; all but the tokens are JSON texts.
struct TokenizerJsonParts {
  const std::vector<AddedToken>& added;
  std::string_view pre_tokenizer;
  std::string_view post_processor = "null";
  std::string_view decoder;
  std::string_view model;
};
std::string write_tokenizer_json(const TokenizerJsonParts& parts);

// A JSON string, quoted and escaped.
std::string json_quoted(std::string_view text);

}  // namespace heed
