// Histograms of durations, and what of them is public.
#include <gtest/gtest.h>

#include "server/metrics.h"
#include "server/test_server.h"

namespace heed::server {
namespace {

using testing::eventually;
using testing::TestServer;

TEST(DurationHistogram, CountsInCumulativeBuckets) {
  DurationHistogram histogram;
  for (const double seconds : {0.0005, 0.001, 0.2, 0.2, 1000.0}) {
    histogram.observe("/v1/models", 200, seconds);
  }
  histogram.observe("/v1/models", 404, 0.5);
  const std::string text = histogram.text("seconds", "Help");
  EXPECT_TRUE(text.starts_with("# HELP seconds Help\n# TYPE seconds histogram\n")) << text;
  const std::string labels = "route=\"/v1/models\",status=\"200\"";
  for (const std::string& line :
       {"seconds_bucket{" + labels + ",le=\"0.001\"} 2\n",  // a bound belongs to its bucket
        "seconds_bucket{" + labels + ",le=\"0.1\"} 2\n",
        "seconds_bucket{" + labels + ",le=\"0.25\"} 4\n",
        "seconds_bucket{" + labels + ",le=\"600\"} 4\n",
        "seconds_bucket{" + labels + ",le=\"+Inf\"} 5\n", "seconds_count{" + labels + "} 5\n",
        std::string("seconds_count{route=\"/v1/models\",status=\"404\"} 1\n")}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_NE(text.find("seconds_sum{" + labels + "} 1000.4"), std::string::npos) << text;
}

TEST(Metrics, ObserveEveryReplyByRouteAndStatus) {
  const TestServer server;
  server.post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 2}});
  server.post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 2}, {"logprobs", 99}}, 400);
  server.get("/v1/models/starter");
  server.get("/nowhere", 404);
  server.client().Post(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"a"}],"max_tokens":3,"stream":true})",
      "application/json");
  const auto metrics_hold = [&](const std::string& line) {
    return eventually([&] {
      return server.client().Get("/metrics")->body.find("\n" + line) != std::string::npos;
    });
  };
  for (const char* labels :
       {R"(route="/v1/completions",status="200")", R"(route="/v1/completions",status="400")",
        R"(route="/v1/models/{model}",status="200")", R"(route="unmatched",status="404")",
        R"(route="/v1/chat/completions",status="200")"}) {
    const std::string name = "heed:request_duration_seconds_count{" + std::string(labels) + "} 1\n";
    EXPECT_TRUE(metrics_hold(name)) << name;
  }
  for (const char* route : {"/v1/completions", "/v1/chat/completions"}) {
    const std::string name = "heed:time_to_first_token_seconds_count{route=\"" +
                             std::string(route) + "\",status=\"200\"} 1\n";
    EXPECT_TRUE(metrics_hold(name)) << name;
  }
}

TEST(Metrics, NeedTheKeyUnlessTheyArePublic) {
  ServeOptions options;
  options.gate.api_key = "secret";
  const TestServer closed(options);
  EXPECT_EQ(closed.client().Get("/metrics")->status, 401);
  options.gate.public_metrics = true;
  const TestServer open(options);
  EXPECT_EQ(open.client().Get("/metrics")->status, 200);
  EXPECT_EQ(open.client().Get("/props")->status, 401);
}

}  // namespace
}  // namespace heed::server
