// The description of the translator that a server holds.
#pragma once

#include <functional>

#include "base/json.h"
#include "engine/loaded_translator.h"
#include "server/compute.h"
#include "server/router.h"

namespace heed::server {

// {"name", "embedded", "parameters", "encoder", "decoder", "languages", "architecture", "examples"}
OrderedJson translator_json(const LoadedTranslator& translator);

// GET /api/translator. `translator` is called on the computing thread; none: the answer is 404.
void add_translator_route(Router& router, Compute& compute,
                          std::function<const LoadedTranslator&()> translator);

}  // namespace heed::server
