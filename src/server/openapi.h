// The OpenAPI document, openapi.json beside this file: its only source.
#pragma once

#include <string_view>

namespace heed::server {

std::string_view openapi_document();

}  // namespace heed::server
