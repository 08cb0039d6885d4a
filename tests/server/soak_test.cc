// Two hundred clients that stream, in the middle of others that misbehave in every way: the former
// get what they asked for or are told that there are too many, and nothing is left behind.
#include <gtest/gtest.h>

#include "base/random.h"
#include "server/test_server.h"
#include "support/process.h"

namespace heed::server {
namespace {

constexpr double max_growth_of_soak = heed::testing::is_sanitized ? 256 : 64;  // megabytes

using heed::testing::open_descriptors;
using heed::testing::resident_megabytes;
using testing::eventually;
using testing::Socket;
using testing::streamed_text;
using testing::TestServer;

constexpr int streaming_clients = 200;
constexpr int hostile_clients = 16;
constexpr int texts = 8;  // different ones

Json body_of_client(int i) {
  return {{"prompt", i % 2 == 0 ? "One day" : "Two moles met"},
          {"max_tokens", 8 + i % texts},
          {"seed", i % texts},
          {"stream", true}};
}

std::string request_of(const Json& body) {
  const std::string text = body.dump();
  return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
         std::to_string(text.size()) + "\r\n\r\n" + text;
}

// One connection that is opened, misused and left.
void misbehave(int port, std::uint64_t kind, const std::atomic<bool>& done) {
  const std::string request = request_of(body_of_client(0));
  Socket client(port, 2048);
  switch (kind % 9) {
    case 0:  // a header a byte at a time
      for (std::size_t i = 0; i < request.size() && !done && client.send(request.substr(i, 1));
           ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      return;
    case 1:  // leaves in the middle of a reply
      client.send(request_of({{"prompt", "a"}, {"n", 8}, {"max_tokens", 200}, {"stream", true}}));
      client.receive(64);
      return;
    case 2: {  // noise
      RandomStream random(kind, 0);
      std::string noise(1 + random.below(4096), '\0');
      for (char& byte : noise) byte = static_cast<char>(random.below(256));
      client.send(noise);
      client.receive(64);
      return;
    }
    case 3:  // half a body
      client.send(request.substr(0, request.size() - 5));
      return;
    case 4:  // asks and never reads
      client.send(request_of({{"prompt", "a"}, {"n", 16}, {"max_tokens", 100}, {"stream", true}}));
      for (int i = 0; i < 20 && !done; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      return;
    case 5: {  // many requests ahead, some replies read
      std::string many;
      for (int i = 0; i < 50; ++i) many += "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
      client.send(many);
      client.receive(1024);
      return;
    }
    case 6:  // a chunk that is none, behind one that is
      client.send(
          "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
          "2\r\n{}\r\nxyz\r\n");
      client.receive(64);
      return;
    case 7:  // says nothing
      for (int i = 0; i < 20 && !done; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      return;
    default: return;  // leaves at once
  }
}

struct Outcome {
  std::atomic<int> complete{0};
  std::atomic<int> refused{0};  // for now: asked again
  std::atomic<int> wrong{0};
};

void stream_until_answered(const TestServer& server, int i, const std::string& expected,
                           Outcome& outcome) {
  const std::string body = body_of_client(i).dump();
  while (true) {
    const auto reply = server.client().Post("/v1/completions", body, "application/json");
    // Of many refusals at once some connections are closed before the request is sent.
    const bool is_closed = !reply && reply.error() == httplib::Error::Write;
    if (is_closed || (reply && reply->status == 503)) {
      ++outcome.refused;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      continue;
    }
    const bool is_right = reply && reply->status == 200 && streamed_text(reply->body) == expected;
    ++(is_right ? outcome.complete : outcome.wrong);
    return;
  }
}

// All of them at once.
void crowd(const TestServer& server, const std::vector<std::string>& expected, std::uint64_t seed,
           Outcome& outcome) {
  std::atomic<bool> done{false};
  std::vector<std::thread> hostile;
  for (std::uint64_t i = 0; i < hostile_clients; ++i) {
    hostile.emplace_back([&, i] {
      for (std::uint64_t kind = seed + i; !done; ++kind) misbehave(server.port(), kind, done);
    });
  }
  std::vector<std::thread> streaming;
  for (int i = 0; i < streaming_clients; ++i) {
    streaming.emplace_back([&, i] {
      stream_until_answered(server, i, expected[static_cast<std::size_t>(i % texts)], outcome);
    });
  }
  for (std::thread& client : streaming) client.join();
  done = true;
  for (std::thread& client : hostile) client.join();
}

TEST(Soak, StreamsAreCompleteAmongHostileClients) {
  ServeOptions options;
  options.http.header_time = options.http.body_time = HttpOptions::Seconds(1);
  options.http.grace_time = HttpOptions::Seconds(1);
  TestServer server(options);
  const std::int64_t descriptors = open_descriptors();
  std::vector<std::string> expected;
  for (int i = 0; i < texts; ++i) {
    const auto reply =
        server.client().Post("/v1/completions", body_of_client(i).dump(), "application/json");
    ASSERT_TRUE(reply && reply->status == 200);
    expected.push_back(streamed_text(reply->body));
  }
  Outcome outcome;
  crowd(server, expected, 1, outcome);  // sets up what is kept for as many
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= descriptors; }, 60));
  const double before = resident_megabytes();
  crowd(server, expected, 1000, outcome);
  EXPECT_EQ(outcome.wrong, 0);
  EXPECT_EQ(outcome.complete, 2 * streaming_clients);
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= descriptors; }, 60))
      << open_descriptors() << " descriptors, before: " << descriptors;
  EXPECT_TRUE(eventually([&] { return resident_megabytes() - before < max_growth_of_soak; }, 30))
      << resident_megabytes() << " MB, before: " << before;
  EXPECT_EQ(server.get("/health")["status"], "ok");
  std::printf("%d complete, %d refused for now; %.1f MB before, %.1f MB after\n",
              outcome.complete.load(), outcome.refused.load(), before, resident_megabytes());
  const auto start = std::chrono::steady_clock::now();
  server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace heed::server
