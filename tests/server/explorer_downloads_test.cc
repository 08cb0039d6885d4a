// Models that the page downloads, from a hub that may misbehave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "base/environment_variable.h"
#include "base/files.h"
#include "engine/pull.h"
#include "server/explorer_support.h"
#include "server/openapi.h"
#include "server/openapi_schema.h"
#include "server/test_server.h"
#include "support/hub_server.h"
#include "support/small_model.h"

namespace heed::server {
namespace {

namespace fs = std::filesystem;
using heed::testing::EnvironmentVariable;
using heed::testing::HubAnswer;
using heed::testing::HubRequest;
using heed::testing::HubServer;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TestExplorer;

class ExplorerDownloads : public heed::testing::SmallModelTest {
 protected:
  ExplorerDownloads() {
    hub_.set_repository("gpt2");
    hub_.set_files(directory_->path());
  }

  static ExplorerOptions options() {
    return {.why_no_downloads = "",
            .download_retry = {.max_tries = 3, .pause = [](std::chrono::milliseconds) {}}};
  }

  // Answers for the weights in place of the hub.
  void misbehave(HubServer::Script script) {
    hub_.set_script([script = std::move(script)](const HubRequest& request,
                                                 int number) -> std::optional<HubAnswer> {
      return request.is_for("model.safetensors") ? script(request, number) : std::nullopt;
    });
  }

  Json start(const std::string& name = "gpt2") {
    const Json list = explorer_.post("/api/downloads/" + name, Json::object());
    expect_fits(list);
    return list;
  }
  Json cancel() {
    const Reply reply = explorer_.send("DELETE", "/api/downloads/gpt2");
    EXPECT_EQ(reply.status, 200) << reply.body;
    return Json::parse(reply.body);
  }
  Json download() { return explorer_.get("/api/models")["download"]; }
  // What it came to.
  Json ended() {
    EXPECT_TRUE(eventually([&] { return download()["state"] != "running"; }, 30));
    return download();
  }
  std::string state_of_gpt2() {
    const Json list = explorer_.get("/api/models");
    for (const Json& model : list["models"]) {
      if (model["name"] == "gpt2") return model["state"];
    }
    return "not listed";
  }

  static void expect_fits(const Json& list) {
    static const Json document = Json::parse(openapi_document());
    const testing::SchemaChecker checker(document);
    EXPECT_THAT(checker.faults(list, document["components"]["schemas"]["ModelList"]), IsEmpty())
        << list;
  }

  // Nothing of a model can be loaded, or was renamed to its place.
  static void expect_no_model() {
    EXPECT_EQ(find_pulled_model("gpt2"), std::nullopt);
    const fs::path directory = default_model_cache() / "gpt2";
    if (!fs::exists(directory)) return;
    for (const auto& entry : fs::directory_iterator(directory)) {
      EXPECT_THAT(entry.path().filename().string(), HasSubstr(".partial"));
    }
  }

  const EnvironmentVariable no_proxy_{"no_proxy", "127.0.0.1,localhost"};
  const EnvironmentVariable token_{"HF_TOKEN", nullptr};
  const EnvironmentVariable offline_{"HEED_OFFLINE", nullptr};
  const heed::testing::ScratchDirectory cache_;
  const EnvironmentVariable cache_variable_{"HEED_CACHE", cache_.path().c_str()};
  HubServer hub_;
  const EnvironmentVariable endpoint_{"HF_ENDPOINT", hub_.endpoint().c_str()};
  const std::string weights_ = read_text_file(directory_->path() / "model.safetensors");
  TestExplorer explorer_{{.name = "own", .transformer = heed::testing::small_gpt(40, 32)},
                         options()};
};

TEST_F(ExplorerDownloads, MakeAModelThatCanBeShown) {
  EXPECT_EQ(download(), nullptr);
  EXPECT_EQ(state_of_gpt2(), "absent");
  EXPECT_EQ(start()["download"]["name"], "gpt2");
  const Json end = ended();
  EXPECT_EQ(end["state"], "finished") << end;
  expect_fits(explorer_.get("/api/models"));
  EXPECT_EQ(state_of_gpt2(), "ready");
  EXPECT_EQ(
      explorer_.post("/api/traces", {{"text", "One day"}, {"model", "gpt2"}})["model"]["name"],
      "gpt2");
}

TEST_F(ExplorerDownloads, OthersThanThePublishedOnesAreRefused) {
  for (const char* name :
       {"org/small", "http:%2F%2Fexample.org%2Fgpt2", "gpt2@main", "gpt2%2Fother"}) {
    EXPECT_THAT(explorer_.refusal("POST", std::string("/api/downloads/") + name, 404),
                HasSubstr("gpt2, EleutherAI/pythia-70m, Qwen/Qwen2.5-0.5B"))
        << name;
  }
  explorer_.refusal("POST", "/api/downloads/gpt2", 400, R"({"url": "http://example.org"})");
  EXPECT_TRUE(hub_.requests().empty());
  TestExplorer closed({.name = "own", .transformer = heed::testing::small_gpt(40, 32)},
                      {.why_no_downloads = "this server was started with --no-downloads"});
  EXPECT_THAT(closed.refusal("POST", "/api/downloads/gpt2", 403), HasSubstr("--no-downloads"));
  EXPECT_EQ(closed.get("/api/models")["downloads"]["allowed"], false);
  EXPECT_TRUE(hub_.requests().empty());
}

TEST_F(ExplorerDownloads, AreOneAtATimeAndCanBeCancelledAndContinued) {
  constexpr std::size_t sent = 5000;
  misbehave([&](const HubRequest& request, int) -> std::optional<HubAnswer> {
    HubAnswer answer = HubServer::cut(HubServer::file_answer(request, weights_), sent);
    answer.hold = true;
    return answer;
  });
  start();
  EXPECT_EQ(start()["download"]["state"], "running") << "the same once more goes on";
  EXPECT_THAT(explorer_.refusal("POST", "/api/downloads/EleutherAI/pythia-70m", 409),
              HasSubstr("'gpt2' is being downloaded"));
  EXPECT_THAT(explorer_.refusal("DELETE", "/api/downloads/EleutherAI/pythia-70m", 409),
              HasSubstr("not being downloaded"));
  EXPECT_EQ(state_of_gpt2(), "downloading");
  ASSERT_TRUE(eventually([&] { return download()["done"] == sent; }));
  EXPECT_EQ(download()["total"], weights_.size());
  EXPECT_THAT(download()["doing"].get<std::string>(), HasSubstr("model.safetensors"));
  EXPECT_EQ(cancel()["download"]["state"], "cancelled");
  EXPECT_EQ(download()["error"], nullptr);
  expect_no_model();
  EXPECT_EQ(state_of_gpt2(), "absent");
  explorer_.refusal("DELETE", "/api/downloads/gpt2", 409);
  explorer_.refusal("GET", "/api/model?model=gpt2", 404);
  // The next one asks for the rest alone.
  hub_.set_script(nullptr);
  hub_.forget_requests();
  start();
  EXPECT_EQ(ended()["state"], "finished");
  EXPECT_EQ(hub_.requests_for("model.safetensors").at(0).header("range"), "bytes=5000-");
  EXPECT_EQ(state_of_gpt2(), "ready");
}

TEST_F(ExplorerDownloads, SayWhatTheHubDidWrongAndLeaveNoModel) {
  std::string other = weights_;
  other[other.size() / 2] ^= 1;
  const auto reply = [](const std::string& status, const std::string& fields) {
    return HubAnswer{heed::testing::http_reply(status, fields, "")};
  };
  struct Fault {
    const char* what;
    HubServer::Script script;
    const char* message;
    std::string type;
  };
  const std::vector<Fault> faults{
      {"drops the connection",
       [&](const HubRequest& request, int) {
         return HubServer::cut(HubServer::file_answer(request, weights_), 100);
       },
       "model.safetensors", "server_error"},
      {"lies about the hash",
       [&](const HubRequest& request, int) { return HubServer::file_answer(request, other); },
       "hash", "unsupported_error"},
      {"lies about the size",
       [&](const HubRequest&, int) {
         return HubAnswer{heed::testing::http_reply(
             "200 OK", heed::testing::content_length(weights_.size() + 9), weights_)};
       },
       "bytes", "unsupported_error"},
      {"redirects to a file",
       [&](const HubRequest&, int) {
         return reply("302 Found", "Location: file:///etc/passwd\r\n");
       },
       "redirect", "server_error"},
      {"redirects endlessly",
       [&](const HubRequest& request, int) {
         return reply("302 Found", "Location: " + request.path + "\r\n");
       },
       "redirect", "server_error"},
      {"is busy for long",
       [&](const HubRequest&, int) {
         return reply("429 Too Many Requests", "Retry-After: 4000\r\n");
       },
       "4000 seconds", "server_error"},
      {"has no such file", [&](const HubRequest&, int) { return reply("404 Not Found", ""); },
       "404", "not_found_error"}};
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.what);
    misbehave(fault.script);
    start();
    const Json end = ended();
    EXPECT_EQ(end["state"], "failed");
    ASSERT_TRUE(end["error"].is_object()) << end;
    EXPECT_THAT(end["error"]["message"].get<std::string>(), HasSubstr(fault.message));
    EXPECT_THAT(end["error"]["message"].get<std::string>(), Not(HasSubstr(cache_.path().string())));
    EXPECT_EQ(end["error"]["type"], fault.type) << end;
    expect_fits(explorer_.get("/api/models"));
    expect_no_model();
  }
  // An honest hub mends it.
  hub_.set_script(nullptr);
  start();
  EXPECT_EQ(ended()["state"], "finished");
}

TEST_F(ExplorerDownloads, WaitAsLongAsABusyHubAsks) {
  std::atomic<bool> go_on = false;
  ExplorerOptions waiting = options();
  waiting.download_retry.pause = [&](std::chrono::milliseconds delay) {
    EXPECT_EQ(delay, std::chrono::seconds(7));
    while (!go_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  misbehave([&](const HubRequest&, int number) -> std::optional<HubAnswer> {
    if (number > 0) return std::nullopt;
    return HubAnswer{heed::testing::http_reply("429 Too Many Requests", "Retry-After: 7\r\n", "")};
  });
  TestExplorer explorer({.name = "own", .transformer = heed::testing::small_gpt(40, 32)}, waiting);
  explorer.post("/api/downloads/gpt2", Json::object());
  EXPECT_TRUE(eventually([&] {
    return explorer.get("/api/models")["download"]["doing"] == "waiting 7 s to try again";
  }));
  go_on = true;
  EXPECT_TRUE(eventually(
      [&] { return explorer.get("/api/models")["download"]["state"] == "finished"; }, 30));
}

TEST_F(ExplorerDownloads, EndWithTheServer) {
  misbehave([&](const HubRequest& request, int) -> std::optional<HubAnswer> {
    HubAnswer answer = HubServer::file_answer(request, weights_);
    answer.drips = true;
    return answer;
  });
  {
    TestExplorer explorer({.name = "own", .transformer = heed::testing::small_gpt(40, 32)},
                          options());
    explorer.post("/api/downloads/gpt2", Json::object());
    EXPECT_TRUE(eventually([&] { return !hub_.requests_for("model.safetensors").empty(); }));
  }
  expect_no_model();
}

}  // namespace
}  // namespace heed::server
