// A model's shape, found by name.
#pragma once

#include <string>

#include "model/config.h"

namespace heed {

// Of a preset's name, a config.json, a model directory (or its weights), a run or the name of a
// model that was pulled. Throws Error{not_found} with the names of the presets.
GptConfig find_gpt_config(const std::string& name_or_path);

}  // namespace heed
