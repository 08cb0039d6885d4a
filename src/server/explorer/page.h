// The page, built from web/ and carried in the binary.
#pragma once

#include <span>
#include <string_view>

#include "server/router.h"

namespace heed::server {

struct PageFile {
  std::string_view path;  // "/", "/assets/index-1a2b.js"
  std::string_view content_type;
  std::string_view tag;         // changes with the contents
  std::string_view compressed;  // gzip
};

// None in a build that was made without the page.
std::span<const PageFile> page_files();

// A route for each of them.
void add_page_routes(Router& router, std::span<const PageFile> files);

}  // namespace heed::server
