// Many clients at once, slow ones, and ones that leave.
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "generate/random_transformer.h"
#include "server/scheduler.h"
#include "server/test_server.h"

namespace heed::server {
namespace {

using heed::testing::random_transformer;
using testing::eventually;
using testing::Socket;
using testing::streamed_text;
using testing::TestHttpServer;
using testing::TestServer;

Json body_of_stream(int i) {
  const std::vector<std::string> prompts{"One day", "Two moles met", "The queen of Sussex said",
                                         "On a rainy morning the old wizard"};
  return {{"prompt", prompts[static_cast<std::size_t>(i) % prompts.size()]},
          {"max_tokens", 10 + i % 23},
          {"seed", i},
          {"temperature", i % 5 == 0 ? 0.0 : 0.9},
          {"stream", true}};
}

std::string post_for_text(const TestServer& server, const Json& body) {
  const auto reply = server.client().Post("/v1/completions", body.dump(), "application/json");
  return reply && reply->status == 200 ? streamed_text(reply->body) : "failed";
}

double metric(const TestServer& server, const std::string& name) {
  const auto reply = server.client().Get("/metrics");
  if (!reply) return -1;
  const std::size_t at = reply->body.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(reply->body.substr(at + name.size() + 2));
}

TEST(Concurrency, SixtyFourStreamsAreEachAsTheyWouldBeAlone) {
  const TestServer server;
  std::vector<std::string> alone;
  for (int i = 0; i < 64; ++i) alone.push_back(post_for_text(server, body_of_stream(i)));
  std::vector<std::string> together(64);
  std::vector<std::thread> clients;
  for (int i = 0; i < 64; ++i) {
    clients.emplace_back([&, i] {
      together[static_cast<std::size_t>(i)] = post_for_text(server, body_of_stream(i));
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(together, alone);
  EXPECT_GT(std::set<std::string>(alone.begin(), alone.end()).size(), 50U);
  EXPECT_GT(metric(server, "heed:n_busy_slots_per_decode"), 1.1);
}

TEST(Concurrency, MoreThanMayWaitAreToldSo) {
  ServeOptions options;
  options.scheduler.parallel = 1;
  options.scheduler.waiting = 4;
  const TestServer server(options);
  const Json reply =
      server.post("/v1/completions",
                  {{"prompt", std::vector<std::string>(2, "a")}, {"n", 2}, {"max_tokens", 200}});
  EXPECT_EQ(reply["choices"].size(), 4U);                            // one after the other
  server.post("/v1/completions", {{"prompt", "a"}, {"n", 5}}, 400);  // never fits
  Socket busy(server.port());
  const std::string body =
      Json{{"prompt", "a"}, {"n", 4}, {"max_tokens", 255}, {"ignore_eos", true}, {"logprobs", 20}}
          .dump();
  busy.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body);
  ASSERT_TRUE(eventually([&] { return metric(server, "heed:requests_deferred") > 1; }));
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", "a"}, {"n", 4}}, 429)["error"]["type"],
            "rate_limit_error");
}

TEST(Concurrency, WhoLeavesStopsTheWork) {
  const TestServer server;
  for (const char* streams : {"true", "false"}) {
    Socket client(server.port());
    const std::string body =
        std::string(R"({"prompt":"a","n":100,"max_tokens":255,"logprobs":20,)") +
        R"("ignore_eos":true,"stream":)" + streams + "}";
    client.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    ASSERT_TRUE(eventually([&] { return metric(server, "heed:requests_processing") > 30; }));
    client.close();
    EXPECT_TRUE(eventually([&] {
      return metric(server, "heed:requests_open") == 0 &&
             metric(server, "heed:requests_processing") == 0 &&
             metric(server, "heed:requests_deferred") == 0;
    }));
  }
  EXPECT_LT(metric(server, "heed:tokens_predicted_total"), 2 * 100 * 255);
}

// 3 MB that are read a byte at a time, and 3 MB that nobody reads.
TEST(Concurrency, SlowReadersHoldUpNobody) {
  const TestServer server;
  const std::string body = R"({"prompt":"a","n":60,"max_tokens":250,"ignore_eos":true,)"
                           R"("stream":true,"seed":1})";
  const std::string request =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  Socket slow(server.port(), 2048);
  Socket silent(server.port(), 2048);
  slow.send(request);
  silent.send(request);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done && slow.receive(1).size() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_TRUE(eventually([&] { return metric(server, "heed:requests_open") >= 1; }));
  for (int i = 0; i < 8; ++i) EXPECT_NE(post_for_text(server, body_of_stream(i)), "failed");
  done = true;
  reader.join();
}

// A reader too slow for what waits for it: its sequence stops, others go on, nothing is lost.
TEST(Scheduler, WaitsForASlowReaderAlone) {
  const StackSpecification config = make_gpt_config(2, 2, 16, 1024, 61);
  const LoadedModel model{.name = "random", .transformer = random_transformer(config)};
  Compute compute;
  Metrics metrics;
  Scheduler scheduler(model, compute, metrics, {.parallel = 2});
  const auto options = [](std::uint64_t seed) {
    return SequenceOptions{.prompt = {1, 2, 3},
                           .max_tokens = 900,
                           .sampling = {.temperature = 1, .seed = seed},
                           .ignore_end_of_text = true};
  };
  const auto read = [](Sequence& sequence, Notifier& notifier) {
    std::vector<std::int32_t> tokens;
    while (!sequence.end()) {
      for (const auto& piece : sequence.take()) {
        if (piece.token) tokens.push_back(*piece.token);
      }
      if (!sequence.end()) notifier.wait();
    }
    return tokens;
  };
  const auto alone = [&](std::uint64_t seed) {
    const auto notifier = std::make_shared<Notifier>();
    return read(*scheduler.submit({options(seed)}, notifier)[0], *notifier);
  };
  const auto first = alone(1);
  const auto second = alone(2);
  ASSERT_EQ(first.size(), 900U);

  const auto slow_notifier = std::make_shared<Notifier>();
  const auto slow = scheduler.submit({options(1)}, slow_notifier)[0];
  ASSERT_TRUE(eventually([&] { return !slow->has_room(); }));
  EXPECT_EQ(alone(2), second);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::int64_t steps = metrics.steps;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(metrics.steps, steps);  // nor does anything spin for it
  EXPECT_LE(slow->drawn(), 257);
  EXPECT_EQ(read(*slow, *slow_notifier), first);
}

TEST(Http, ARequestIsStoppedWhenItsClientLeavesOrTimeIsUp) {
  std::atomic<int> stopped{0};
  Router router;
  router.add("GET", "/wait", [&](const Request& request) -> Reply {
    while (!stop_requested(request.stop)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++stopped;
    throw Error(ErrorCode::interrupted, "stopped");
  });
  HttpOptions patient;
  patient.request_time = HttpOptions::Seconds(600);
  TestHttpServer patient_server(router, patient);
  {
    Socket client(patient_server.port());
    client.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(eventually([&] { return stopped == 1; }));
  HttpOptions hasty;
  hasty.request_time = HttpOptions::Seconds(0.3);
  TestHttpServer hasty_server(router, hasty);
  Socket client(hasty_server.port());
  client.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(client.receive_all().starts_with("HTTP/1.1 408 "));
}

TEST(Http, AClientThatReadsNothingIsLeft) {
  std::atomic<bool> ended{false};
  Router router;
  router.add("GET", "/endless", [&](const Request&) {
    Reply reply;
    reply.stream = [&](StreamWriter& writer) {
      const std::string part(65536, 'x');
      if (writer.write(part)) return true;
      ended = true;
      return false;
    };
    return reply;
  });
  HttpOptions options;
  options.write_time = HttpOptions::Seconds(0.3);
  TestHttpServer server(router, options);
  Socket client(server.port(), 2048);
  client.send("GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return ended.load(); }));
  EXPECT_TRUE(eventually([&] { return server.server().connections() == 0; }));
}

TEST(Http, StopsGracefully) {
  std::atomic<int> begun{0};
  Router router;
  router.add("GET", "/short", [&](const Request&) {
    ++begun;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return json_reply({{"done", true}});
  });
  router.add("GET", "/long", [&](const Request& request) -> Reply {
    ++begun;
    while (!stop_requested(request.stop)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw Error(ErrorCode::interrupted, "the server stops");
  });
  HttpOptions options;
  options.grace_time = HttpOptions::Seconds(0.6);
  TestHttpServer server(router, options);
  Socket idle(server.port());
  Socket quick(server.port());
  Socket slow(server.port());
  quick.send("GET /short HTTP/1.1\r\nHost: localhost\r\n\r\n");
  slow.send("GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return begun == 2; }));
  const auto start = std::chrono::steady_clock::now();
  server.stop();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  EXPECT_LT(passed.count(), 3);
  EXPECT_TRUE(quick.receive_all().ends_with("{\"done\":true}\n"));
  EXPECT_TRUE(slow.receive_all().starts_with("HTTP/1.1 503 "));
  EXPECT_EQ(idle.receive_all(), "");
}

TEST(Http, ConnectionsBeyondTheLimitAreToldSo) {
  Router router;
  router.add("GET", "/", [](const Request&) { return json_reply({{"ok", true}}); });
  HttpOptions options;
  options.max_connections = 2;
  TestHttpServer server(router, options);
  Socket first(server.port());
  Socket second(server.port());
  ASSERT_TRUE(eventually([&] { return server.server().connections() == 2; }));
  Socket third(server.port());
  EXPECT_TRUE(third.receive_all().starts_with("HTTP/1.1 503 "));
  first.close();
  ASSERT_TRUE(eventually([&] { return server.server().connections() < 2; }));
  Socket fourth(server.port());
  fourth.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(fourth.receive_all().starts_with("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace heed::server
