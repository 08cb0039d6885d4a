// The OpenAPI document: openapi.json beside this file, in which "x-sampling" stands for the
// sampling options; and the parameters of addresses, as it lists them.
#pragma once

#include <string_view>

#include "server/router.h"

namespace heed::server {

// Valid for the program's lifetime.
std::string_view openapi_document();

// openapi.json as it is.
std::string_view embedded_openapi();

// From here on, routes of the explorer's API ("/api/…") that were added refuse parameters that the
// document does not list.
void refuse_undocumented_queries(Router& router);

}  // namespace heed::server
