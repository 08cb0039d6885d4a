// OpenAI's endpoints, and those of operation: health, metrics, properties, tokenization.
#pragma once

#include "server/context.h"
#include "server/router.h"

namespace heed::server {

// The context outlives the router.
void register_service(Router& router, Context& context);

}  // namespace heed::server
