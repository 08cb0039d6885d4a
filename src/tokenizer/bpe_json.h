// What the two kinds of BPE tokenizers have in common in tokenizer.json.
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

namespace heed {

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
