// Prompts in requests: a string, token ids, or a list of either.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/loaded_model.h"

namespace heed::server {

struct PromptLimits {
  std::size_t most = 256;   // prompts in one request
  std::int64_t tokens = 0;  // of each
};

// Null, "" and an absent prompt are the beginning of a text, for models that have a token for it.
// Throws FieldError; `field` is the prompt's.
std::vector<std::vector<std::int32_t>> read_prompts(const Json* prompt, const LoadedModel& model,
                                                    const PromptLimits& limits, const char* field);

// Throws FieldError{context_length} if there are more tokens than fit.
void require_prompt_fits(const std::vector<std::int32_t>& tokens, const PromptLimits& limits,
                         const char* field);

}  // namespace heed::server
