// The routes of the explorer: /api/… and the page.
#pragma once

#include "engine/loaded_model.h"
#include "server/context.h"
#include "server/router.h"

namespace heed::server {

// The context outlives the router.
void register_explorer(Router& router, Context& context);

// The page and the endpoints of an encoder-decoder, which outlives the router. `budget`: bytes that
// its traces may take.
void register_translator_explorer(Router& router, Compute& compute, const LoadedModel& translator,
                                  std::int64_t budget);

}  // namespace heed::server
