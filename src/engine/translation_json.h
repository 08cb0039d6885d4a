// Translations in JSON documents: of the command line and of the server.
#pragma once

#include "base/json_fwd.h"
#include "engine/loaded_translator.h"

namespace heed {

// {"text", "score", "log_probability", "finished", "tokens": [{"id", "text"}]}; the end of a
// translation is one of its tokens.
OrderedJson hypothesis_json(const LoadedTranslator& translator, const TokenHypothesis& hypothesis);

}  // namespace heed
