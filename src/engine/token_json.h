// Tokens in JSON documents: of the command line, the server and the page.
#pragma once

#include <span>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"

namespace heed {

// {"id", "text"}; where the token's bytes are not valid UTF-8, "text" has U+FFFD in their place and
// "bytes" lists them.
OrderedJson token_json(std::int32_t id, const std::string& bytes);
OrderedJson token_json(const LoadedModel& model, std::int32_t id);
OrderedJson tokens_json(const LoadedModel& model, std::span<const std::int32_t> ids);

// The "text" of a token.
std::string token_text(const LoadedModel& model, std::int32_t id);

}  // namespace heed
