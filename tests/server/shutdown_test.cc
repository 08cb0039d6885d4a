// A server that is told to stop ends soon, whatever its clients are in the middle of.
#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"
#include "server/test_server.h"

namespace heed::server {
namespace {

using testing::eventually;
using testing::host_field;
using testing::Socket;
using testing::TestHttpServer;

// Far below the time that a request may take to arrive and a reply to be written, and far above
// what a slow machine needs.
constexpr double soon = 15;

double seconds_to_stop(TestHttpServer& server) {
  const auto start = std::chrono::steady_clock::now();
  server.stop();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Shutdown : public ::testing::Test {
 protected:
  Shutdown() {
    router_.add("POST", "/echo", [](const Request& request) {
      return json_reply({{"is", request.body}});
    });
    router_.add("GET", "/endless", [this](const Request&) {
      Reply reply;
      reply.stream = [this, begun = false](StreamWriter& writer) mutable {
        if (!begun) ++streaming_;
        begun = true;
        if (writer.write(std::string(65536, 'x'))) return true;
        ++ended_;
        return false;
      };
      return reply;
    });
    options_.write_time = options_.request_time = HttpOptions::Seconds(600);
    options_.body_time = options_.idle_time = HttpOptions::Seconds(600);
  }

  Router router_;
  HttpOptions options_;
  std::atomic<int> streaming_{0};
  std::atomic<int> ended_{0};
};

TEST_F(Shutdown, RequestsThatAreStillArrivingDoNotDelayIt) {
  options_.grace_time = HttpOptions::Seconds(0.2);
  TestHttpServer server(router_, options_);
  Socket idle(server.port());
  Socket in_header(server.port());
  Socket in_body(server.port());
  Socket in_chunk(server.port());
  in_header.send("POST /echo HTTP/1.1\r\nHo");
  in_body.send("POST /echo HTTP/1.1\r\n" + host_field + "Content-Length: 100\r\n\r\n{");
  in_chunk.send("POST /echo HTTP/1.1\r\n" + host_field +
                "Transfer-Encoding: chunked\r\n\r\n64\r\n{");
  ASSERT_TRUE(eventually([&] {
    return server.server().connections() == 4 && server.server().requests_processing() == 2;
  }));
  EXPECT_LT(seconds_to_stop(server), soon);
  EXPECT_EQ(idle.receive_all(), "");
  EXPECT_EQ(server.server().connections(), 0);
}

TEST_F(Shutdown, StreamsEndWithTheGraceTime) {
  options_.grace_time = HttpOptions::Seconds(1);
  TestHttpServer server(router_, options_);
  std::vector<std::unique_ptr<Socket>> silent;
  for (int i = 0; i < 4; ++i) {
    silent.push_back(std::make_unique<Socket>(server.port(), 2048));
    silent.back()->send("GET /endless HTTP/1.1\r\n" + host_field + "\r\n");
  }
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      Socket reader(server.port());
      reader.send("GET /endless HTTP/1.1\r\n" + host_field + "\r\n");
      while (!reader.receive(1 << 16).empty()) {
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return streaming_ == 8; }));
  EXPECT_LT(seconds_to_stop(server), soon);
  EXPECT_EQ(ended_, 8);
  for (std::thread& reader : readers) reader.join();
}

// Clients that connect and ask without a pause, up to the end and beyond it.
TEST_F(Shutdown, LoadDoesNotDelayIt) {
  options_.grace_time = HttpOptions::Seconds(0.5);
  TestHttpServer server(router_, options_);
  std::atomic<bool> stopped{false};
  std::atomic<int> answered{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, port = server.port()] {
      while (!stopped) {
        const httplib::Result reply =
            httplib::Client("127.0.0.1", port).Post("/echo", "{}", "text/plain");
        if (reply && reply->status == 200) ++answered;
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return answered > 100; }));
  EXPECT_LT(seconds_to_stop(server), soon);
  stopped = true;
  for (std::thread& client : clients) client.join();
}

// The scheduler's streams too.
TEST(ShutdownOfCompletions, StreamsEndWithTheGraceTime) {
  ServeOptions options;
  options.http.grace_time = HttpOptions::Seconds(0.2);
  testing::TestServer server(options);
  const std::string body =
      R"({"prompt":"a","n":64,"max_tokens":255,"ignore_eos":true,"stream":true})";
  std::vector<std::unique_ptr<Socket>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<Socket>(server.port(), 2048));
    clients.back()->send("POST /v1/completions HTTP/1.1\r\n" + host_field +
                         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  for (const auto& client : clients) EXPECT_FALSE(client->receive(1).empty());
  const auto start = std::chrono::steady_clock::now();
  server.stop();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  EXPECT_LT(passed.count(), soon);
}

}  // namespace
}  // namespace heed::server
