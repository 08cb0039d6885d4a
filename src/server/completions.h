// POST /v1/completions and POST /v1/chat/completions.
#pragma once

#include "server/context.h"
#include "server/exchange.h"

namespace heed::server {

Reply complete(const Request& request, Context& context);
Reply complete_chat(const Request& request, Context& context);

}  // namespace heed::server
