#include "server/explorer/page.h"

#include <zlib.h>

#include <array>

#include "base/error.h"

namespace heed::server {
namespace {

// Own resources only. The formulas have style attributes; images are drawn in the page.
constexpr const char* content_policy =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
  check(result == Z_STREAM_END, "embedded files are intact");
  return text;
}

// Whether Accept-Encoding, such as "gzip, deflate;q=0.5", accepts gzip.
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

Reply send(const PageFile& file, const Request& request) {
  Reply reply;
  // Names stay the same from build to build, so browsers revalidate by the tag.
  reply.headers.emplace_back("Cache-Control", "no-cache");
  reply.headers.emplace_back("ETag", file.tag);
  reply.headers.emplace_back("Vary", "Accept-Encoding");
  reply.content_type = std::string(file.content_type);
  reply.headers.emplace_back("Content-Security-Policy", content_policy);
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
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
}

}  // namespace heed::server
