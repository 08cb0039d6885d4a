// Tokens as the page reads them.
#pragma once

#include <span>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"

namespace heed {

// {"id", "text"}, and "bytes" where they are no text: then "text" has U+FFFD in their place.
OrderedJson token_json(const LoadedModel& model, std::int32_t id);
OrderedJson tokens_json(const LoadedModel& model, std::span<const std::int32_t> ids);

// The text of a token alone.
std::string token_text(const LoadedModel& model, std::int32_t id);

}  // namespace heed
