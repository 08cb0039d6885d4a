// The OpenAPI document and the routes say the same; the page is served as it was built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "server/explorer/page.h"
#include "server/explorer_support.h"
#include "server/openapi.h"
#include "server/openapi_schema.h"

namespace heed::server {
namespace {

using testing::starter_explorer;

std::string capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

TEST(ExplorerDocument, HasEveryRouteAndNoOther) {
  const Json document = Json::parse(openapi_document());
  const testing::SchemaChecker checker(document);
  std::set<std::string> written, served;
  for (const auto& [path, methods] : document["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      written.insert(capitals(method) + " " + path);
      EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << path;
      EXPECT_TRUE(operation["responses"].contains("200") || operation["responses"].contains("201"))
          << path;
      // Every {name} of the path is described, and nothing else as being in it.
      std::set<std::string> described;
      for (const Json& given : operation.value("parameters", Json::array())) {
        const Json& parameter = checker.resolved(given);
        if (parameter["in"] == "path") described.insert(parameter["name"]);
      }
      std::set<std::string> captured;
      for (const std::string& segment : parse_request("GET", path).segments) {
        if (segment.starts_with('{')) captured.insert(segment.substr(1, segment.size() - 2));
      }
      EXPECT_EQ(described, captured) << method << " " << path;
    }
  }
  std::set<std::string_view> pages;
  for (const PageFile& file : page_files()) pages.insert(file.path);
  for (const Router::Route& route : starter_explorer().router().routes()) {
    const bool is_page = route.pattern == "/" || pages.contains(route.pattern);
    if (!is_page) served.insert(route.method + " " + route.pattern);
  }
  EXPECT_EQ(written, served);
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

class ExplorerPage : public ::testing::Test {
 protected:
  ExplorerPage() { add_page_routes(router_, files_); }

  Reply get(const std::string& path, const std::map<std::string, std::string>& headers = {}) {
    Request request = parse_request("GET", path);
    request.headers = headers;
    return router_.handle(std::move(request));
  }
  static std::string header(const Reply& reply, const std::string& name) {
    for (const auto& [key, value] : reply.headers) {
      if (key == name) return value;
    }
    return "";
  }

  std::string text_ = std::string(50000, 'x') + "end";
  std::string compressed_ = gzip(text_);
  std::vector<PageFile> files_{{"/", "text/html; charset=utf-8", "\"a1\"", compressed_},
                               {"/assets/a.js", "text/javascript", "\"b2\"", compressed_}};
  Router router_;
};

TEST_F(ExplorerPage, IsCompressedWhereTheClientAcceptsIt) {
  const Reply plain = get("/");
  EXPECT_EQ(plain.body, text_);
  EXPECT_EQ(header(plain, "Content-Encoding"), "");
  const Reply packed = get("/", {{"accept-encoding", "br, gzip;q=0.8"}});
  EXPECT_EQ(packed.body, compressed_);
  EXPECT_EQ(header(packed, "Content-Encoding"), "gzip");
  EXPECT_EQ(get("/", {{"accept-encoding", "gzip;q=0"}}).body, text_);
}

TEST_F(ExplorerPage, IsRevalidatedAndLoadsNothingFromElsewhere) {
  const Reply page = get("/");
  EXPECT_EQ(header(page, "Cache-Control"), "no-cache");
  EXPECT_THAT(header(page, "Content-Security-Policy"), ::testing::HasSubstr("default-src 'self'"));
  EXPECT_THAT(header(page, "Content-Security-Policy"),
              ::testing::Not(::testing::HasSubstr("http")));
  EXPECT_EQ(get("/", {{"if-none-match", "\"a1\""}}).status, 304);
  EXPECT_EQ(get("/", {{"if-none-match", "\"zz\""}}).status, 200);
  EXPECT_EQ(header(get("/assets/a.js"), "Cache-Control"), "no-cache");
  EXPECT_EQ(get("/assets/other.js").status, 404);
}

TEST(EmbeddedPage, HasItsStartAndTheLicencesOfWhatItBundles) {
  Router router;
  add_page_routes(router, page_files());
  const Reply start = router.handle(parse_request("GET", "/"));
  EXPECT_EQ(start.status, 200);
  EXPECT_THAT(start.body, ::testing::HasSubstr("src=\"/assets/index.js\""));
  EXPECT_EQ(router.handle(parse_request("GET", "/assets/index.js")).status, 200);
  const std::string licenses = router.handle(parse_request("GET", "/licenses.txt")).body;
  for (const char* library : {"svelte", "d3-hierarchy", "katex", "leaflet", "uplot", "OFL-1.1"}) {
    EXPECT_THAT(licenses, ::testing::HasSubstr(library));
  }
}

}  // namespace
}  // namespace heed::server
