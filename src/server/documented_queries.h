// The parameters of addresses, as the OpenAPI document lists them.
#pragma once

#include "server/router.h"

namespace heed::server {

// From here on, routes of the explorer's API ("/api/…") that were added refuse parameters that the
// document does not list.
void refuse_undocumented_queries(Router& router);

}  // namespace heed::server
