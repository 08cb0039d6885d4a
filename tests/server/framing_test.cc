// How requests are delimited, on sockets: what RFC 9112 calls malformed is refused, the connection
// closed and nothing behind it served; what it allows is understood.
#include <gtest/gtest.h>

#include "server/test_server.h"

namespace heed::server {
namespace {

using testing::host_field;
using testing::Socket;
using testing::TestHttpServer;
using namespace std::string_literals;

const std::string next_request = "GET /next HTTP/1.1\r\n" + host_field + "\r\n";

Router framing_router() {
  Router router;
  router.add("GET", "/", [](const Request&) { return json_reply({{"is", "root"}}); });
  router.add("GET", "/next", [](const Request&) { return json_reply({{"is", "next"}}); });
  router.add("GET", "/query", [](const Request& request) {
    return json_reply({{"is", request.parameter("q").value_or("")}});
  });
  router.add("POST", "/echo", [](const Request& request) {
    return json_reply({{"is", request.body}, {"x", request.header("x")}});
  });
  return router;
}

class Framing : public ::testing::Test {
 protected:
  // All that the server sends until it closes.
  std::string exchange(const std::string& bytes) const {
    Socket client(server_.port());
    client.send(bytes);
    return client.receive_all();
  }

  // Refused with the status in the one reply that there is.
  void expect_refused(const std::string& bytes, int status = 400) const {
    const std::string reply = exchange(bytes + next_request);
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 " + std::to_string(status) + " ")) << bytes << "\n"
                                                                               << reply;
    EXPECT_EQ(reply.find("HTTP/1.1 ", 1), std::string::npos) << bytes << "\n" << reply;
    EXPECT_EQ(reply.find("\"next\""), std::string::npos) << bytes << "\n" << reply;
  }

  void expect_body(const std::string& bytes, const std::string& body) const {
    const std::string reply = exchange(bytes);
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 ")) << bytes << "\n" << reply;
    EXPECT_NE(reply.find(OrderedJson(body).dump()), std::string::npos) << bytes << "\n" << reply;
  }

  static std::string get(const std::string& fields, const std::string& target = "/") {
    return "GET " + target + " HTTP/1.1\r\n" + fields + "\r\n";
  }
  static std::string post(const std::string& fields, const std::string& body) {
    return "POST /echo HTTP/1.1\r\n" + host_field + fields + "\r\n" + body;
  }
  static std::string post_chunks(const std::string& chunks) {
    return post("Connection: close\r\nTransfer-Encoding: chunked\r\n", chunks);
  }

  const Router router_ = framing_router();
  const TestHttpServer server_{router_, {}, {.max_body_bytes = 1 << 16}};
};

TEST_F(Framing, FoldedLinesAreRefused) {
  expect_refused(get(host_field + "X: a\r\n b\r\n"));
  expect_refused(get(host_field + "X: a\r\n\tb\r\n"));
  expect_refused(get(host_field + "X:\r\n a\r\n"));
  expect_refused(get(" X: a\r\n" + host_field));
}

TEST_F(Framing, AContentLengthIsOneNumber) {
  for (const char* length : {"", "+2", "-2", "0x2", "2a", "2 2", "2, 2", "2,2", ",2", "2.0", "two",
                             "\"2\"", "18446744073709551616"}) {
    expect_refused(post("Content-Length: "s + length + "\r\n", "{}"));
  }
  expect_refused(post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"));
  expect_refused(post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"));
  expect_refused(post("Content-Length: 2\r\nContent-Length:\r\n", "{}"));
  expect_refused(post("Content-Length:\r\nContent-Length:\r\n", ""));
  expect_refused(post("Content-Length: 18446744073709551615\r\n", "{}"), 413);
  expect_body(post("Connection: close\r\nContent-Length: \t0002 \r\n", "{}"), "{}");
}

TEST_F(Framing, ATransferEncodingIsChunkedAndAlone) {
  const std::string chunks = "2\r\n{}\r\n0\r\n\r\n";
  for (const char* coding : {"", "gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked",
                             "identity", "xchunked", "chunked;q=1", "\"chunked\""}) {
    expect_refused(post("Transfer-Encoding: "s + coding + "\r\n", chunks));
  }
  expect_refused(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunks));
  expect_refused(post("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", chunks));
  expect_refused(post("Content-Length: 12\r\nTransfer-Encoding: chunked\r\n", chunks));
  expect_refused("POST /echo HTTP/1.0\r\n" + host_field + "Transfer-Encoding: chunked\r\n\r\n" +
                 chunks);
  expect_body(post("Connection: close\r\nTransfer-Encoding: Chunked\r\n", chunks), "{}");
}

TEST_F(Framing, AHeaderLineIsANameAColonAndAValue) {
  expect_refused(get(host_field + "no colon\r\n"));
  expect_refused(get(host_field + ": no name\r\n"));
  expect_refused(get(host_field + "X : a\r\n"));
  expect_refused(get(host_field + "X\t: a\r\n"));
  expect_refused(get(host_field + "A B: c\r\n"));
  expect_refused(get(host_field + "X(y): c\r\n"));
  expect_refused(post("Content-Length : 2\r\n", "{}"));
  for (const char* value : {"a\rb", "a\x01", "a\x7F", "\x1B[31m"}) {
    expect_refused(get(host_field + "X: " + value + "\r\n"));
  }
  expect_refused(get(host_field + "X: a\0b\r\n"s));
  expect_refused(get(host_field + "X: a\nY: b\r\n"));
  expect_refused("GET / HTTP/1.1\nHost: localhost\n\n");
  const std::string length = "Connection: close\r\nContent-Length: 1\r\n";
  expect_body(post(length + "X:\t b \xC3\xA9 \t\r\n", "1"), "b \u00e9");
  expect_body(post(length + "X:\r\n", "1"), "1");
}

TEST_F(Framing, HeaderValuesAreNotDecoded) {
  expect_body(post("Connection: close\r\nContent-Length: 0\r\nX: pa%41ss%20+\r\n", ""),
              "pa%41ss%20+");
}

TEST_F(Framing, TheRequestLineIsMethodTargetAndVersion) {
  for (const char* line :
       {"GET", "GET /", "GET  / HTTP/1.1", "GET /  HTTP/1.1", "GET / HTTP/1.1 ", " GET / HTTP/1.1",
        "GET\t/\tHTTP/1.1", "GET / http/1.1", "GET / HTTP/1", "GET / HTTP/1.10", "GET / HTTP/11",
        "GET / b HTTP/1.1", "GET HTTP/1.1", "get / HTTP/1.1", "BREW / HTTP/1.1",
        "GET /\x01 HTTP/1.1", "GET localhost HTTP/1.1", "CONNECT localhost:80 HTTP/1.1"}) {
    const std::string reply = exchange(line + "\r\n"s + host_field + "Connection: close\r\n\r\n");
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 400 ")) << line << "\n" << reply;
  }
  for (const char* version : {"HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3.0", "HTTP/9.9"}) {
    expect_refused("GET / "s + version + "\r\n" + host_field + "\r\n", 505);
  }
  expect_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
}

TEST_F(Framing, WhatIsNoRequestIsRefusedAtOnce) {
  expect_refused("\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03"s);
  Socket endless(server_.port());
  endless.send("GET /" + std::string(4000, 'a'));
  EXPECT_TRUE(endless.receive_all().starts_with("HTTP/1.1 414 "));
}

TEST_F(Framing, HeadersBeyondTheLimitsAreToldSo) {
  std::string many = host_field;
  for (int i = 0; i < 101; ++i) many += "X" + std::to_string(i) + ": a\r\n";
  expect_refused(get(many), 431);
  expect_refused(get(host_field + "X: " + std::string(70000, 'a') + "\r\n"), 431);
  Socket endless(server_.port());
  endless.send("GET / HTTP/1.1\r\nX: " + std::string(70000, 'a'));
  EXPECT_TRUE(endless.receive_all().starts_with("HTTP/1.1 431 "));
  expect_refused(get(host_field, "/" + std::string(2048, 'a')), 414);
}

TEST_F(Framing, ARequestNamesOneHost) {
  expect_refused(get(""));
  expect_refused(get(host_field + host_field));
  expect_refused(get(host_field + "Host: evil.example\r\n"));
  for (const char* name : {"",
                           "localhost, evil.example",
                           "[evil.com]",
                           "[::1",
                           "::1",
                           "[::1]x",
                           "[::1%25lo]",
                           "[]",
                           "localhost:x@evil.com",
                           "user@localhost",
                           "localhost:99999",
                           "localhost:65536",
                           "localhost:-1",
                           "localhost:+1",
                           "localhost:",
                           "localhost:80:80",
                           "local host",
                           "a/b",
                           "http://localhost",
                           ":80",
                           "."}) {
    expect_refused(get("Host: "s + name + "\r\n"));
  }
  expect_refused(get("Host: evil.example\r\nConnection: close\r\n"), 421);
  for (const char* name : {"localhost", "LocalHost:80", "localhost.:1", "127.0.0.1:65535",
                           "[::1]:8080", "[0:0:0:0:0:0:0:1]"}) {
    expect_body(get("Connection: close\r\nHost: "s + name + "\r\n"), "root");
  }
}

TEST_F(Framing, BadChunksAreRefused) {
  const std::string last = "0\r\n\r\n";
  for (const char* chunks : {"zz\r\n{}\r\n",   "\r\n{}\r\n",
                             "+2\r\n{}\r\n",   "-2\r\n{}\r\n",
                             "0x2\r\n{}\r\n",  " 2\r\n{}\r\n",
                             "2 \r\n{}\r\n",   "2 2\r\n{}\r\n",
                             "2.\r\n{}\r\n",   "10000000000000002\r\n{}\r\n",
                             "2\r\n{}",        "2\r\n{}x\r\n",
                             "2\r\n{}x",       "2\r\n{}\n",
                             "2\n{}\r\n",      "2\r{}\r\n",
                             "2\r\n{}\r\r\n",  "2;\r\n{}\r\n",
                             "2;=a\r\n{}\r\n", "2;a=\r\n{}\r\n",
                             ";a\r\n{}\r\n",   "2,a\r\n{}\r\n"}) {
    expect_refused(post_chunks(chunks + last));
  }
  for (const char* trailer :
       {"no colon\r\n", "X : a\r\n", ": a\r\n", "X: a\nb\r\n", "X: a\r\n b\r\n",
        "X: a\r\n\tb\r\nY: c\r\n", "X:\r\n b\r\n", "X: a\r\nY: b\r\n \r\n", " X: a\r\n"}) {
    expect_refused(post_chunks("2\r\n{}\r\n0\r\n"s + trailer + "\r\n"));
  }
  expect_refused(post_chunks("ffffffffffffffff\r\n"), 413);
  expect_refused(post_chunks("10001\r\n"), 413);
  expect_refused(post_chunks("ffff\r\n" + std::string(65535, 'a') + "\r\n2\r\n"), 413);
  expect_refused(post_chunks("2;a=" + std::string(20000, 'b')));
}

TEST_F(Framing, ValidChunksAreRead) {
  expect_body(post_chunks("2\r\n{}\r\n0\r\n\r\n"), "{}");
  expect_body(post_chunks("00A\r\n0123456789\r\nb\r\nabcdefghijk\r\n000\r\n\r\n"),
              "0123456789abcdefghijk");
  expect_body(post_chunks("2;a;b=c;d=\"e;f\\\"\"\r\n{}\r\n0;last\r\n\r\n"), "{}");
  expect_body(post_chunks("2\r\n{}\r\n0\r\nX: a\r\nChecksum: 1, 2\r\n\r\n"), "{}");
  expect_body(post_chunks("0\r\n\r\n"), "");
  // A byte at a time.
  Socket client(server_.port());
  for (const char byte : post_chunks("1;a=b\r\n{\r\n1\r\n}\r\n0\r\nX: a\r\n\r\n")) {
    client.send(std::string(1, byte));
  }
  EXPECT_NE(client.receive_all().find("\"{}\""), std::string::npos);
}

TEST_F(Framing, AbsoluteTargetsAndTheServerAsAWhole) {
  const std::string close = host_field + "Connection: close\r\n";
  expect_body(get(close, "http://localhost/next"), "next");
  expect_body(get(close, "HTTP://LOCALHOST:80/query?q=a"), "a");
  expect_body(get(close, "http://[::1]"), "root");
  expect_body(get(close, "http://localhost/query?q=http://x/"), "http://x/");
  // The address in the target counts, not the Host header.
  expect_refused(get(close, "http://evil.example/next"), 421);
  expect_body(get("Host: evil.example\r\nConnection: close\r\n", "http://localhost/next"), "next");
  expect_refused(get(close, "http:///next"));
  expect_refused(get(close, "http://user@localhost/next"));
  expect_refused(get(close, "ftp://localhost/next"));
  EXPECT_TRUE(exchange("OPTIONS * HTTP/1.1\r\n" + close + "\r\n").starts_with("HTTP/1.1 204 "));
  EXPECT_TRUE(exchange("GET * HTTP/1.1\r\n" + close + "\r\n").starts_with("HTTP/1.1 400 "));
}

}  // namespace
}  // namespace heed::server
