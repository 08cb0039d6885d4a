#include "server/explorer/page.h"

#include <zlib.h>

#include <array>

#include "base/error.h"

namespace heed::server {
namespace {

// Nothing from elsewhere. Styles in attributes are the formulas'; images are drawn on the spot.
constexpr const char* content_policy =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr std::string_view no_page =
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>heed</title>\n"
    "<p>This build of heed has no page: it was made without Node.js. Its answers are under\n"
    "<a href=\"/api/model\">/api/model</a>; <a href=\"/openapi.json\">/openapi.json</a> lists them "
    "all.</p>\n</html>\n";

std::string inflated(std::string_view compressed) {
  z_stream stream{};
  check(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK, "zlib starts");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string text;
  std::array<char, 16384> buffer;
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    result = inflate(&stream, Z_NO_FLUSH);
    text.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  check(result == Z_STREAM_END, "the page's files are whole");
  return text;
}

// "gzip, deflate;q=0.5": whether gzip is among what is accepted.
bool accepts_gzip(const std::string& accepted) {
  for (std::size_t begin = 0; begin < accepted.size();) {
    const std::size_t end = std::min(accepted.find(',', begin), accepted.size());
    std::string item = accepted.substr(begin, end - begin);
    std::erase(item, ' ');
    if (item == "gzip" ||
        (item.starts_with("gzip;q=") && item.find_first_of("123456789", 7) != std::string::npos)) {
      return true;
    }
    begin = end + 1;
  }
  return false;
}

void add_page_headers(Reply& reply) {
  reply.headers.emplace_back("Content-Security-Policy", content_policy);
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
}

Reply send(const PageFile& file, const Request& request) {
  Reply reply;
  // Names of assets hold a hash of their contents: another file has another name.
  const bool is_hashed = file.path.starts_with("/assets/");
  reply.headers.emplace_back("Cache-Control",
                             is_hashed ? "public, max-age=31536000, immutable" : "no-cache");
  reply.headers.emplace_back("ETag", file.tag);
  reply.headers.emplace_back("Vary", "Accept-Encoding");
  reply.content_type = std::string(file.content_type);
  add_page_headers(reply);
  if (request.header("if-none-match") == file.tag) {
    reply.status = 304;
    return reply;
  }
  if (accepts_gzip(request.header("accept-encoding"))) {
    reply.headers.emplace_back("Content-Encoding", "gzip");
    reply.body = std::string(file.compressed);
  } else {
    reply.body = inflated(file.compressed);
  }
  return reply;
}

}  // namespace

void add_page_routes(Router& router, std::span<const PageFile> files) {
  for (const PageFile& file : files) {
    router.add("GET", std::string(file.path),
               [file](const Request& request) { return send(file, request); });
  }
  if (!files.empty()) return;
  router.add("GET", "/", [](const Request&) {
    Reply reply = text_reply(std::string(no_page), "text/html; charset=utf-8");
    add_page_headers(reply);
    return reply;
  });
}

}  // namespace heed::server
