// Tokens that are no text, such as <|im_start|>.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/loaded_model.h"

namespace heed {

// The special tokens of a model's tokenizer, in ascending order; none where it has no tokenizer.
// Replies leave them out.
std::vector<std::int32_t> special_tokens(const LoadedModel& model);

}  // namespace heed
