// What requests give as text: a string, token ids, or a list of either.
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
// Throws Error{invalid_argument}; `name` is the field's.
std::vector<std::vector<std::int32_t>> read_prompts(const Json* prompt, const LoadedModel& model,
                                                    const PromptLimits& limits, const char* name);

// Throws Error{not_found} where a request's "model" is another one.
void check_model_name(const Json& body, const std::string& name);

}  // namespace heed::server
