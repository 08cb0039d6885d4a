// Reading and writing the parts of tokenizer.json common to all kinds of tokenizers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tokenizer/merger.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace heed {

// The member `key` of an object. Throws Error{corrupt_data} when there is none.
const Json& json_member(const Json& object, const char* key, std::string_view source);

// The string member `key`. Throws Error{corrupt_data} when it is absent or no string.
const std::string& json_string_member(const Json& object, const char* key, std::string_view source);

// Throws Error{unsupported} unless the member `key` is absent, null, or one of `allowed`.
void require_json_value(const Json& object, const char* key, const std::vector<Json>& allowed,
                        std::string_view source);

// The boolean member `key`; `fallback` when it is absent or null. Throws Error{corrupt_data} when
// it is something else.
bool json_boolean_member(const Json& object, const char* key, bool fallback,
                         std::string_view source);

// The array member `key`. Throws Error{corrupt_data} when it is absent or no array.
const Json& json_array_member(const Json& object, const char* key, std::string_view source);

// The JSON text of a value, in quotes, cut to a length that suits a message.
std::string shown_in_quotes(const Json& value);

// An added token as files have it: content, special [false], normalized [unless special], lstrip,
// rstrip and single_word [false].
AddedToken read_added_token(const Json& entry, std::int64_t id, std::string_view source);
// {"id", "content", ...}
Json added_token_json(const AddedToken& token);

// The added_tokens of a document.
std::vector<AddedToken> read_added_tokens(const Json& document, std::string_view source);

// The texts of all tokens by id, from the object `vocabulary` (text to id) and added tokens that
// are not in it; empty for ids that no token has. Throws Error{corrupt_data} when two tokens have
// the same id, and when half of the ids or more have no token.
std::vector<std::string> tokens_by_id(const Json& vocabulary, const std::vector<AddedToken>& added,
                                      std::string_view source);

// Puts added tokens at their ids, after the vocabulary or where it has a gap. Throws
// Error{corrupt_data} when an id is another token's, and when half of the ids or more have no
// token.
void place_added_tokens(std::vector<std::string>& tokens, const std::vector<AddedToken>& added,
                        std::string_view source);

// The text of a tokenizer.json; all but the tokens are JSON texts.
struct TokenizerJsonParts {
  const std::vector<AddedToken>& added;
  std::string_view normalizer = "null";
  std::string_view pre_tokenizer = "null";
  std::string_view post_processor = "null";
  std::string_view decoder;
  std::string_view model;
};
std::string write_tokenizer_json(const TokenizerJsonParts& parts);

// A JSON string, quoted and escaped.
std::string json_quoted(std::string_view text);

// The merges of a model, each "a b" or ["a", "b"].
std::vector<std::pair<std::string, std::string>> read_merges(const Json& model,
                                                             std::string_view source);

// Throws Error{unsupported} when the model drops merges at random or marks parts of words.
void check_bpe_model(const Json& model, std::string_view source);

// The steps of the member `key`: itself, or those of a Sequence, whose array is `steps_key`; none
// when it is absent or null. Throws Error{corrupt_data} for a step that is no object with a type.
std::vector<const Json*> read_steps(const Json& document, const char* key, const char* steps_key,
                                    std::string_view source);

// The type of a step that read_steps gave.
const std::string& step_type(const Json& step);

// Throws Error{unsupported} naming the step of the member `key`.
[[noreturn]] void refuse_step(const Json& step, const char* key, std::string_view expected,
                              std::string_view source);

// The tokens that a post-processor puts around one text, by TemplateProcessing, BertProcessing or
// RobertaProcessing. Those of type ByteLevel put none.
TextTemplate read_text_template(const Json& document, std::string_view source);

// `tokens` in TemplateProcessing's words, as JSON; `other`, if not empty, is the step before it.
std::string write_post_processor(const TextTemplate& tokens, std::string_view other,
                                 const std::function<std::string(std::int32_t)>& token_text);

struct BpeModelParts {
  std::int32_t vocabulary_size = 0;
  const std::vector<MergeRule>& merges;
  std::function<std::string(std::int32_t)> token_text;  // empty for an id without a token
  std::string unknown = "null";                         // JSON
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

// The model as JSON.
std::string write_bpe_model(const BpeModelParts& parts);

}  // namespace heed
