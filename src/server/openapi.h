// The OpenAPI document: openapi.json beside this file, in which "x-sampling" stands for the
// sampling options.
#pragma once

#include <string_view>

namespace heed::server {

// Valid for the program's lifetime.
std::string_view openapi_document();

// openapi.json as it is.
std::string_view embedded_openapi();

}  // namespace heed::server
