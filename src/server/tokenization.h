// POST /tokenize and /detokenize, of a model of one text.
#pragma once

#include "engine/loaded_model.h"
#include "server/router.h"

namespace heed::server {

// The model outlives the router.
void register_tokenization(Router& router, const LoadedModel& model);

}  // namespace heed::server
