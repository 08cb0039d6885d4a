// The OpenAPI document, openapi.json beside this file: the one place where it is written.
#pragma once

#include <string_view>

namespace heed::server {

std::string_view openapi_document();

}  // namespace heed::server
