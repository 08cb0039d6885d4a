// Requests that are none, or that never end: each gets its status, and the server goes on.
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "server/connection.h"
#include "server/test_server.h"
#include "support/process.h"

namespace heed::server {
namespace {

using heed::testing::open_descriptors;
using heed::testing::resident_megabytes;
using heed::testing::running_threads;
using testing::eventually;
using testing::host_field;
using testing::Socket;
using testing::TestServer;

// Whole requests, behind which the connection may be closed at once, and the status that each gets.
struct Malformed {
  std::string bytes;
  int status;
};

std::string post(const std::string& body, const std::string& path = "/v1/completions") {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

const std::vector<Malformed>& malformed() {
  using namespace std::string_literals;
  static const std::vector<Malformed> cases{
      {"garbage\r\n\r\n", 400},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"s, 400},  // TLS
      {"GET\r\n\r\n", 400},
      {"GET / HTTP/9.9\r\n" + host_field + "\r\n", 505},
      {"BREW / HTTP/1.1\r\n" + host_field + "\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET /../../etc/passwd HTTP/1.1\r\n" + host_field + "\r\n", 400},
      {"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" + host_field + "\r\n", 400},
      {"GET /assets/..%2f..%2fetc/passwd HTTP/1.1\r\n" + host_field + "\r\n", 400},
      {"GET /etc/passwd HTTP/1.1\r\n" + host_field + "\r\n", 404},
      {"GET /%00 HTTP/1.1\r\n" + host_field + "\r\n", 400},
      {"GET /" + std::string(3000, 'a') + " HTTP/1.1\r\n" + host_field + "\r\n", 414},
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
      {"GET /health HTTP/1.1\r\n" + host_field + "Origin: http://evil.example\r\n\r\n", 403},
      {"GET /health HTTP/1.1\r\n" + host_field + repeated("A: b\r\n", 12000) + "\r\n", 431},
      {"GET /health HTTP/1.1\r\n" + host_field + "Content-Length : 2\r\n\r\n{}", 400},
      {"GET /health HTTP/1.1\r\n" + host_field + "A B: c\r\n\r\n", 400},
      {"PUT /health HTTP/1.1\r\n" + host_field + "Content-Length: 0\r\n\r\n", 405},
      {"POST /v1/completions HTTP/1.1\r\n" + host_field + "Content-Length: 99999999999\r\n\r\n",
       413},
      {"POST /v1/completions HTTP/1.1\r\n" + host_field + "Content-Length: -1\r\n\r\n", 400},
      {"POST /v1/completions HTTP/1.1\r\n" + host_field +
           "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
       400},
      {"POST /v1/completions HTTP/1.1\r\n" + host_field +
           "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
       400},
      {"POST /v1/completions HTTP/1.1\r\n" + host_field +
           "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
       415},
      {post("{"), 400},
      {post("[]"), 400},
      {post("nul"), 400},
      {post("{}\0{}"s), 400},
      {post(R"({"prompt":"a","prompt":"b"})"), 400},
      {post(R"({"prompt":")"
            "\xff\xfe"
            R"("})"),
       400},
      {post(R"({"prompt":NaN})"), 400},
      {post(R"({"temperature":1e999})"), 400},
      {post(R"({"max_tokens":-9223372036854775809})"), 400},
      {post(repeated("[", 100000)), 400},
      {post(R"({"prompt":)" + repeated("[", 60) + repeated("]", 60) + "}"), 400},
      {post(R"({"a":)" + std::string(100000, '9') + "}"), 400},
      {post(R"({"prompt":[)" + repeated("5,", 20000) + "5]}"), 400},
      {post(R"({"tokens":[1,2,"x"]})", "/detokenize"), 400},
      {post(R"({"input":[[]]})", "/v1/embeddings"), 400},
  };
  return cases;
}

int status_of(const std::string& reply) {
  return reply.starts_with("HTTP/1.1 ") ? std::atoi(reply.c_str() + 9) : 0;
}

// Replies are read until the server closes the connection; where it could go on, that takes the
// idle time.
ServeOptions with_short_idle_time() {
  ServeOptions options;
  options.http.idle_time = HttpOptions::Seconds(0.1);
  return options;
}

TEST(Malformed, EachGetsItsStatusAndOneMessage) {
  const TestServer server(with_short_idle_time());
  for (const Malformed& request : malformed()) {
    Socket client(server.port());
    client.send(request.bytes);
    const std::string reply = client.receive_all();
    EXPECT_EQ(status_of(reply), request.status) << request.bytes.substr(0, 200) << "\n" << reply;
    const std::size_t body = reply.find("\r\n\r\n");
    ASSERT_NE(body, std::string::npos) << request.bytes.substr(0, 200);
    const Json error = parse_json(reply.substr(body + 4), "reply")["error"];
    EXPECT_TRUE(error["code"].is_string() || error["code"].is_null()) << error;
    EXPECT_TRUE(error["param"].is_string() || error["param"].is_null()) << error;
    EXPECT_FALSE(error["type"].get<std::string>().empty());
    EXPECT_FALSE(error["message"].get<std::string>().empty());
  }
}

TEST(Malformed, WhatNeverEndsIsEnded) {
  ServeOptions options;
  options.http.header_time = HttpOptions::Seconds(0.2);
  options.http.body_time = HttpOptions::Seconds(0.2);
  options.http.idle_time = HttpOptions::Seconds(0.2);
  const TestServer server(options);
  for (const char* bytes :
       {"GET / HT", "GET / HTTP/1.1\r\nHost: loc",
        "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"}) {
    Socket client(server.port());
    client.send(bytes);
    EXPECT_EQ(status_of(client.receive_all()), 408) << bytes;
  }
  Socket nothing(server.port());
  EXPECT_EQ(nothing.receive_all(), "");
  // A byte now and then is no progress.
  Socket drip(server.port());
  for (int i = 0; i < 40 && drip.send("x"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(status_of(drip.receive_all()), 408);
  EXPECT_EQ(server.get("/health")["status"], "ok");
}

// What a refused body holds is never read as the next request.
TEST(Malformed, ARefusedBodyIsNoRequest) {
  const TestServer server;
  Socket client(server.port());
  const std::string inner = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
  client.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
      "Content-Length: " +
      std::to_string(inner.size()) + "\r\n\r\n" + inner);
  const std::string reply = client.receive_all();
  EXPECT_EQ(status_of(reply), 403);
  EXPECT_EQ(reply.find("starter"), std::string::npos);
}

TEST(Http, ConnectionsAreKept) {
  const TestServer server;
  Socket client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::string reply;
    while (!reply.ends_with("}\n")) {
      const std::string part = client.receive(65536);
      ASSERT_FALSE(part.empty()) << reply;
      reply += part;
    }
    EXPECT_EQ(status_of(reply), 200);
  }
  client.send("GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(status_of(client.receive_all()), 200);
}

// One after another, each on a connection of its own; some end before they are whole.
void send_some_malformed(const TestServer& server, int count, RandomStream random) {
  for (int i = 0; i < count; ++i) {
    const std::string& whole =
        malformed()[static_cast<std::size_t>(random.below(malformed().size()))].bytes;
    Socket client(server.port());
    const std::size_t part = random.below(3) == 0 ? random.below(whole.size()) : whole.size();
    client.send(whole.substr(0, part));
    if (random.below(2) == 0 && part == whole.size()) client.receive(64);
  }
}

void send_malformed(const TestServer& server, int count, std::uint64_t seed) {
  constexpr int clients_at_once = 4;  // one alone mostly waits
  std::vector<std::thread> clients;
  for (std::uint64_t client = 0; client < clients_at_once; ++client) {
    clients.emplace_back(send_some_malformed, std::cref(server), count / clients_at_once,
                         RandomStream(seed, client));
  }
  for (std::thread& client : clients) client.join();
}

constexpr int requests = heed::testing::is_sanitized ? 1000 : 10000;
constexpr double max_growth = heed::testing::is_sanitized ? 1e9 : 4;  // megabytes

// Shortly after the last of them memory, threads and descriptors are back to what they were, and
// stay there.
TEST(Malformed, TenThousandLeaveNothingBehind) {
  const TestServer server(with_short_idle_time());
  for (const Malformed& request : malformed()) {  // the first of a kind loads and sets up for all
    Socket client(server.port());
    client.send(request.bytes);
    client.receive_all();
  }
  send_malformed(server, requests / 2, 4);  // from several threads, which keep memory of their own
  EXPECT_EQ(server.get("/health")["status"], "ok");
  // Until threads that have nothing to do are gone, and free memory with them.
  std::this_thread::sleep_for(4 * ConnectionThreads::idle_time);
  const double before = resident_megabytes();
  const std::int64_t threads = running_threads();
  const std::int64_t descriptors = open_descriptors();
  for (std::uint64_t batch = 1; batch <= 3; ++batch) {
    send_malformed(server, requests, batch);
    EXPECT_EQ(server.get("/health")["status"], "ok");
    const double busy = resident_megabytes();
    EXPECT_TRUE(eventually([&] { return resident_megabytes() - before < max_growth; }));
    EXPECT_TRUE(eventually([&] { return open_descriptors() <= descriptors; }))
        << open_descriptors() << " descriptors, before: " << descriptors;
    EXPECT_TRUE(eventually([&] { return running_threads() <= threads; }))
        << running_threads() << " threads, before: " << threads;
    std::printf(
        "resident: %.1f MB before, %.1f MB at the end of %d malformed requests, %.1f later\n",
        before, busy, requests, resident_megabytes());
  }
  EXPECT_EQ(server.post("/v1/completions",
                        {{"prompt", "One day"}, {"max_tokens", 3}})["usage"]["completion_tokens"],
            3);
}

}  // namespace
}  // namespace heed::server
