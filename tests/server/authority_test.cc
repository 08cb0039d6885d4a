#include "server/gate.h"

#include <gtest/gtest.h>

namespace heed::server {
namespace {

std::string parsed(std::string_view text) {
  const auto authority = parse_authority(text);
  return authority ? authority->text() + (authority->is_address ? " address" : " name") : "none";
}

TEST(Authority, NamesAndAddressesWithAPort) {
  EXPECT_EQ(parsed("localhost"), "localhost name");
  EXPECT_EQ(parsed("LocalHost:8080"), "localhost:8080 name");
  EXPECT_EQ(parsed("a-b.example.:0"), "a-b.example:0 name");
  EXPECT_EQ(parsed("127.0.0.1:65535"), "127.0.0.1:65535 address");
  EXPECT_EQ(parsed("127.1"), "127.1 name");
  EXPECT_EQ(parsed("[::1]"), "[::1] address");
  EXPECT_EQ(parsed("[0:0:0:0:0:0:0:1]:80"), "[::1]:80 address");
  EXPECT_EQ(parsed("[::FFFF:1.2.3.4]"), "[::ffff:1.2.3.4] address");
}

TEST(Authority, NothingElse) {
  for (const char* text : {"",
                           ".",
                           ":80",
                           "localhost:",
                           "localhost:x",
                           "localhost:+1",
                           "localhost:-1",
                           "localhost: 1",
                           "localhost:65536",
                           "localhost:99999999999",
                           "localhost:80:80",
                           "localhost:x@evil.com",
                           "user@localhost",
                           "a b",
                           "a,b",
                           "a/b",
                           "http://a",
                           "[evil.com]",
                           "[::1",
                           "::1",
                           "[::1]x",
                           "[::1]:",
                           "[]",
                           "[::1%25lo]",
                           "[127.0.0.1]",
                           "\u00e9.example",
                           "a%2e"}) {
    EXPECT_EQ(parsed(text), "none") << text;
  }
  EXPECT_EQ(parsed(std::string(254, 'a')), "none");
}

std::string origin(std::string_view text) {
  const auto found = parse_origin(text);
  return found ? found->text() : "none";
}

TEST(Origin, IsWrittenInOneWay) {
  EXPECT_EQ(origin("http://localhost"), "http://localhost");
  EXPECT_EQ(origin("HTTP://LocalHost:80"), "http://localhost");
  EXPECT_EQ(origin("https://example.org:443"), "https://example.org");
  EXPECT_EQ(origin("https://example.org:80"), "https://example.org:80");
  EXPECT_EQ(parse_origin("https://example.org")->port(), 443);
  for (const char* text : {"", "null", "localhost", "ftp://a", "http://", "http://a/", "http:/a",
                           "http://a, http://b"}) {
    EXPECT_EQ(origin(text), "none") << text;
  }
}

}  // namespace
}  // namespace heed::server
