// Replies on sockets: versions, methods without a body, expectations, requests sent ahead, streams.
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/error.h"
#include "server/test_server.h"

namespace heed::server {
namespace {

using testing::host_field;
using testing::Socket;
using testing::TestHttpServer;

Router reply_router() {
  Router router;
  router.add("GET", "/", [](const Request&) { return json_reply({{"is", "root"}}); });
  router.add("GET", "/large", [](const Request&) {
    return text_reply(std::string(1 << 20, 'a') + "end", "text/plain");
  });
  router.add("GET", "/stream", [](const Request&) {
    Reply reply = text_reply("", "text/plain");
    reply.stream = [](StreamWriter& writer) {
      for (const char* part : {"one ", "", "two"}) writer.write(part);
      return false;
    };
    return reply;
  });
  router.add("GET", "/cut", [](const Request&) {
    Reply reply;
    reply.stream = [](StreamWriter& writer) -> bool {
      writer.write("part");
      throw std::runtime_error("failed");
    };
    return reply;
  });
  router.add("GET", "/split", [](const Request& request) {
    Reply reply = json_reply({});
    reply.headers.emplace_back("X", request.parameter("x").value_or(""));
    return reply;
  });
  router.add("POST", "/echo", [](const Request& request) {
    return json_reply({{"is", request.body}});
  });
  return router;
}

class HttpReplies : public ::testing::Test {
 protected:
  std::string exchange(const std::string& bytes) const {
    Socket client(server_.port());
    client.send(bytes);
    return client.receive_all();
  }

  static std::string get(const std::string& target, const std::string& fields = "",
                         const std::string& version = "1.1") {
    return "GET " + target + " HTTP/" + version + "\r\n" + host_field + fields + "\r\n";
  }

  // Reads until what was received ends like this.
  static std::string receive_until(Socket& client, const std::string& end) {
    std::string received;
    while (!received.ends_with(end)) {
      const std::string part = client.receive(65536);
      if (part.empty()) break;
      received += part;
    }
    return received;
  }

  const Router router_ = reply_router();
  const TestHttpServer server_{router_, {}, {.api_key = "pa%41ss", .max_body_bytes = 64}};
  const std::string key_ = "Authorization: Bearer pa%41ss\r\n";
};

TEST_F(HttpReplies, AKeyIsComparedAsItWasSent) {
  EXPECT_TRUE(exchange(get("/large", key_ + "Connection: close\r\n")).ends_with("aend"));
  EXPECT_TRUE(exchange(get("/large", "X-Api-Key: pa%41ss\r\nConnection: close\r\n"))
                  .starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(exchange(get("/large", "X-Api-Key: paAss\r\nConnection: close\r\n"))
                  .starts_with("HTTP/1.1 401 "));
}

TEST_F(HttpReplies, OldClientsGetNoChunks) {
  const std::string streamed = exchange(get("/stream", key_ + "Connection: keep-alive\r\n", "1.0"));
  EXPECT_TRUE(streamed.ends_with("\r\n\r\none two")) << streamed;
  EXPECT_EQ(streamed.find("chunked"), std::string::npos) << streamed;
  EXPECT_NE(streamed.find("Connection: close\r\n"), std::string::npos) << streamed;
  EXPECT_TRUE(exchange(get("/", key_, "1.0")).ends_with("\"root\"}\n"));  // closes by itself
  Socket kept(server_.port());
  for (int i = 0; i < 2; ++i) {
    kept.send(get("/", key_ + "Connection: keep-alive\r\n", "1.0"));
    const std::string reply = receive_until(kept, "}\n");
    EXPECT_NE(reply.find("Connection: keep-alive\r\n"), std::string::npos) << reply;
    EXPECT_NE(reply.find("Keep-Alive: timeout=5\r\n"), std::string::npos) << reply;
  }
}

TEST_F(HttpReplies, StreamsComeInChunks) {
  const std::string reply = exchange(get("/stream", key_ + "Connection: close\r\n"));
  EXPECT_TRUE(reply.ends_with("\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n")) << reply;
  Socket kept(server_.port());
  kept.send(get("/stream", key_) + get("/", key_));
  EXPECT_TRUE(receive_until(kept, "\"root\"}\n").ends_with("\"root\"}\n"));
}

TEST_F(HttpReplies, AStreamThatFailsHasNoEnd) {
  const std::string reply = exchange(get("/cut", key_));
  EXPECT_TRUE(reply.ends_with("4\r\npart\r\n")) << reply;
}

TEST_F(HttpReplies, HeadersAloneForHead) {
  for (const char* target : {"/", "/stream", "/large"}) {
    const std::string reply =
        exchange("HEAD " + std::string(target) + " HTTP/1.1\r\n" + host_field + key_ + "\r\n" +
                 get("/", key_ + "Connection: close\r\n"));
    const std::size_t end = reply.find("\r\n\r\n");
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 ")) << reply;
    EXPECT_TRUE(reply.substr(end + 4).starts_with("HTTP/1.1 200 ")) << reply;
    EXPECT_TRUE(reply.ends_with("\"root\"}\n")) << reply;
  }
}

TEST_F(HttpReplies, RequestsSentAheadAreAnsweredInOrder) {
  const std::string body = "POST /echo HTTP/1.1\r\n" + host_field + key_;
  std::string bytes;
  for (int i = 0; i < 10; ++i) {
    bytes += body + "Content-Length: 2\r\n\r\nb" + std::to_string(i);
    bytes +=
        body + "Transfer-Encoding: chunked\r\n\r\n2\r\nc" + std::to_string(i) + "\r\n0\r\n\r\n";
  }
  const std::string reply = exchange(bytes + get("/", key_ + "Connection: close\r\n"));
  std::size_t at = 0;
  for (int i = 0; i < 10; ++i) {
    for (const char* name : {"b", "c"}) {
      at = reply.find("{\"is\":\"" + (name + std::to_string(i)) + "\"}", at);
      ASSERT_NE(at, std::string::npos) << name << i << "\n" << reply;
    }
  }
  EXPECT_TRUE(reply.ends_with("\"root\"}\n"));
}

TEST_F(HttpReplies, ABodyIsAskedForOnceItIsKnownToBeAccepted) {
  const std::string start = "POST /echo HTTP/1.1\r\n" + host_field + "Connection: close\r\n";
  const std::string expects = "Expect: 100-Continue\r\n";
  Socket client(server_.port());
  client.send(start + key_ + expects + "Content-Length: 2\r\n\r\n");
  EXPECT_EQ(receive_until(client, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("{}");
  EXPECT_TRUE(client.receive_all().ends_with("{\"is\":\"{}\"}\n"));
  // Refused without being asked for.
  EXPECT_TRUE(
      exchange(start + key_ + expects + "Content-Length: 65\r\n\r\n").starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(exchange(start + expects + "Content-Length: 2\r\n\r\n").starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(exchange(start + key_ + "Expect: a miracle\r\nContent-Length: 2\r\n\r\n{}")
                  .starts_with("HTTP/1.1 417 "));
  // Nothing to ask for, and a version that does not know of it.
  EXPECT_TRUE(
      exchange(start + key_ + expects + "Content-Length: 0\r\n\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(exchange("POST /echo HTTP/1.0\r\n" + host_field + key_ + expects +
                       "Content-Length: 2\r\n\r\n{}")
                  .starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpReplies, HeadersOfAReplyCannotBeSplit) {
  const std::string reply = exchange(get("/split?x=a%0d%0aY:%20b", key_ + "Connection: close\r\n"));
  EXPECT_NE(reply.find("\r\nX: a  Y: b\r\n"), std::string::npos) << reply;
}

TEST_F(HttpReplies, TheGateNamesTheOptionThatWouldLetARequestIn) {
  const std::string close = "Connection: close\r\n";
  EXPECT_NE(exchange(get("/", close + "Origin: HTTPS://Example.com:443\r\n"))
                .find("--allow-origin https://example.com\""),
            std::string::npos);
  const std::string other = exchange("GET / HTTP/1.1\r\nHost: Box.LAN:8080\r\n" + close + "\r\n");
  EXPECT_NE(other.find("--allow-host box.lan\""), std::string::npos) << other;
}

TEST(HttpPorts, TheNextFreePortIsTakenWhereThatIsAllowed) {
  const Router router;
  const Gate gate{{}};
  const HttpServer first(router, gate, {.port = 0});
  EXPECT_GT(first.port(), 0);
  EXPECT_THROW(HttpServer(router, gate, {.port = first.port()}), Error);
  const HttpServer second(router, gate, {.port = first.port(), .next_ports = 20});
  EXPECT_GT(second.port(), first.port());
  EXPECT_LE(second.port(), first.port() + 20);
  EXPECT_THROW(HttpServer(router, gate, {.host = "no.such.host.invalid", .port = 0}), Error);
}

}  // namespace
}  // namespace heed::server
