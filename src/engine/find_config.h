// A model's shape, found by name.
#pragma once

#include <string>

#include "model/architecture.h"

namespace heed {

// Of a preset's name, a config.json, a model directory (or its weights), a run or the name of a
// model that was pulled. Throws Error{not_found} with the names of the presets.
StackSpecification find_gpt_config(const std::string& name_or_path);

// The same of any model: also presets of encoders and encoder-decoders, and what `heed train` has.
Architecture find_architecture(const std::string& name_or_path);

// Of an encoder-decoder: a preset's shape, or a directory.
// Throws Error{not_found} with the names, and Error{unsupported} for a model of one stack.
Architecture find_translator_architecture(const std::string& name_or_path);

}  // namespace heed
