// A model's shape, found by name.
#pragma once

#include <string>

#include "model/config.h"

namespace heed {

// The name of a preset, a config.json, or a model directory (or its weights). Throws
// Error{not_found} with the names there are.
GptConfig find_gpt_config(const std::string& name_or_path);

}  // namespace heed
