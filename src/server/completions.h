// POST /v1/completions.
#pragma once

#include "server/context.h"
#include "server/exchange.h"

namespace heed::server {

Reply complete(const Request& request, Context& context);

}  // namespace heed::server
