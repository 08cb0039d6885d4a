// Encoder-decoders by name.
#pragma once

#include <string>

#include "engine/loaded_translator.h"
#include "engine/pair_model.h"

namespace heed {

// Whether a name that load_model takes is that of an encoder-decoder, which load_pair_model loads
// instead.
bool is_pair_model(const std::string& name_or_path);

// The model and its tokenizers, if it has any. Throws what load_translator throws.
PairModel load_pair_model(const std::string& name_or_path);

// Of a translator that stays where it is, borrowed.
PairModel pair_model_of(const LoadedTranslator& translator);

}  // namespace heed
