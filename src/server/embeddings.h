// POST /v1/embeddings.
#pragma once

#include "server/context.h"
#include "server/exchange.h"

namespace heed::server {

Reply embed(const Request& request, Context& context);

}  // namespace heed::server
