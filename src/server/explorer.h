// The routes of the explorer: /api/… and the page.
#pragma once

#include "server/context.h"
#include "server/router.h"

namespace heed::server {

// The context outlives the router.
void register_explorer(Router& router, Context& context);

}  // namespace heed::server
