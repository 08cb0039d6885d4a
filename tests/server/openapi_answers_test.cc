// Real answers of every endpoint are as the OpenAPI document says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "server/explorer_support.h"
#include "server/openapi.h"
#include "server/openapi_schema.h"

namespace heed::server {
namespace {

using heed::testing::TemporaryDirectory;
using testing::KeepingWriter;
using testing::SchemaChecker;
using testing::TestExplorer;

// Where the answers' media types are described.
constexpr const char* json_type = "application/json";
constexpr const char* array_type = "application/octet-stream";
constexpr const char* events_type = "text/event-stream";

class OpenApi : public ::testing::Test {
 protected:
  OpenApi() { trace_ = explorer_.trace("The mole met the queen of “Sussex”."); }

  // The parts of a path, {id} being the trace.
  std::string filled(std::string path) const {
    const std::size_t at = path.find("{id}");
    return at == std::string::npos ? path : path.replace(at, 4, trace_);
  }

  const Json& operation(const std::string& method, const std::string& path) const {
    std::string small = method;
    std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
    return document_.at("paths").at(path).at(small);
  }

  const Json& schema(const std::string& method, const std::string& path, int status,
                     const char* type) const {
    const Json& response = operation(method, path).at("responses").at(std::to_string(status));
    return checker_.resolved(response).at("content").at(type).at("schema");
  }

  void expect_fits(const Json& value, const Json& schema, const std::string& what) const {
    const std::vector<std::string> faults = checker_.faults(value, schema);
    EXPECT_THAT(faults, ::testing::IsEmpty()) << what;
  }

  // Sends to `target`, which belongs to the document's `path`, and checks the answer.
  void check(const std::string& method, const std::string& path, const std::string& target,
             const Json& body = nullptr, int status = 200) {
    const Reply reply = explorer_.send(method, filled(target), body.is_null() ? "" : body.dump());
    ASSERT_EQ(reply.status, status) << target << "\n" << reply.body;
    EXPECT_EQ(reply.content_type, json_type) << target;
    expect_fits(Json::parse(reply.body), schema(method, path, status, json_type), target);
    checked_.insert(method + " " + path);
  }

  // The data of every event; [DONE] is none.
  void check_events(const std::string& method, const std::string& path, const std::string& target,
                    const Json& body, std::size_t least) {
    const Reply reply = explorer_.send(method, filled(target), body.is_null() ? "" : body.dump());
    ASSERT_EQ(reply.status, 200) << target << "\n" << reply.body;
    EXPECT_EQ(reply.content_type, events_type) << target;
    KeepingWriter writer;
    write_stream(reply, writer);
    std::istringstream lines(writer.text);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("data: {")) continue;
      ++count;
      expect_fits(Json::parse(line.substr(6)), schema(method, path, 200, events_type), line);
    }
    EXPECT_GE(count, least) << target;
    checked_.insert(method + " " + path);
  }

  // The binary form and its headers, then the form in JSON.
  void check_array(const std::string& path, const std::string& target) {
    const Reply reply = explorer_.send("GET", filled(target));
    ASSERT_EQ(reply.status, 200) << target << "\n" << reply.body;
    EXPECT_EQ(reply.content_type, array_type);
    const Json& response = operation("GET", path).at("responses").at("200");
    std::size_t bytes = sizeof(float);
    for (const auto& [name, value] : reply.headers) {
      if (!name.starts_with("X-Heed-")) continue;
      ASSERT_TRUE(response["headers"].contains(name)) << name;
      expect_fits(value, checker_.resolved(response["headers"][name])["schema"], name);
      if (name != "X-Heed-Shape") continue;
      std::istringstream extents(value);
      for (std::string extent; std::getline(extents, extent, ',');) bytes *= std::stoul(extent);
    }
    EXPECT_EQ(reply.body.size(), bytes) << target;
    const char sign = target.find('?') == std::string::npos ? '?' : '&';
    check("GET", path, target + sign + "format=json");
  }

  TemporaryDirectory directory_;
  TestExplorer explorer_{
      load_model("starter"),
      {.runs = {testing::train_small_run(directory_)}, .live_runs = directory_ / "live"}};
  const Json document_ = Json::parse(openapi_document());
  const SchemaChecker checker_{document_};
  std::string trace_;
  std::set<std::string> checked_;
};

TEST_F(OpenApi, AnswersAreAsItSays) {
  check("GET", "/health", "/health");
  check("GET", "/props", "/props");
  check("GET", "/openapi.json", "/openapi.json");
  check("GET", "/api/openapi.json", "/api/openapi.json");
  check("POST", "/tokenize", "/tokenize", {{"content", "One day"}});
  check("POST", "/tokenize", "/tokenize", {{"content", "é one"}, {"with_pieces", true}});
  check("POST", "/detokenize", "/detokenize", {{"tokens", {5, 6}}});
  check("GET", "/v1/models", "/v1/models");
  check("GET", "/v1/models/{model}", "/v1/models/starter");
  const std::string completions = "/v1/completions";
  check("POST", completions, completions, {{"prompt", "One"}, {"max_tokens", 2}});
  check("POST", completions, completions,
        {{"prompt", "One"}, {"max_tokens", 2}, {"echo", true}, {"logprobs", 2}, {"n", 2}});
  // Tokens that come before the thread of the connection looks are one event; so is the usage.
  check_events("POST", completions, completions,
               {{"prompt", "One"},
                {"max_tokens", 3},
                {"logprobs", 1},
                {"stream", true},
                {"stream_options", {{"include_usage", true}}}},
               2);
  const std::string chat = "/v1/chat/completions";
  Json chat_body{{"messages", {{{"role", "user"}, {"content", "One"}}}}, {"max_tokens", 3}};
  check("POST", chat, chat, chat_body);
  chat_body.update({{"logprobs", true}, {"top_logprobs", 2}, {"n", 2}});
  check("POST", chat, chat, chat_body);
  chat_body.update({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  check_events("POST", chat, chat, chat_body, 6);
  for (const char* format : {"float", "base64"}) {
    check("POST", "/v1/embeddings", "/v1/embeddings",
          {{"input", {"One", "day"}}, {"encoding_format", format}});
  }

  // of a translator: see translations_test.cc
  check("POST", "/v1/translations", "/v1/translations", {{"input", "One"}}, 422);

  check("GET", "/api/models", "/api/models");
  check("GET", "/api/model", "/api/model");
  check("GET", "/api/model", "/api/model?model=starter");
  check("POST", "/api/tokenize", "/api/tokenize", {{"text", "“é”"}});
  check("GET", "/api/vocabulary", "/api/vocabulary");
  check("GET", "/api/vocabulary", "/api/vocabulary?find=mole");
  check("GET", "/api/vocabulary", "/api/vocabulary?find=qqqq");
  check("GET", "/api/parameters", "/api/parameters");
  check("GET", "/api/parameters", "/api/parameters?config=gpt3");
  check("GET", "/api/plan", "/api/plan?flops=1e9&read=1e9");
  check("GET", "/api/plan",
        "/api/plan?config=gpt3&nodes=512&sequences=1024&memory=5e11&shard=3&flops=1e12&read=1e10");
  check("GET", "/api/presets", "/api/presets");

  const std::string trace = "/api/traces/{id}";
  const Json changes = Json::parse(R"([{"kind":"scale","point":"L1H2","factor":0.5},
      {"kind":"cut","layer":1,"head":0,"edges":[[3,1]],"renormalise":true}])");
  check("POST", "/api/traces", "/api/traces", {{"text", "The queen"}, {"base", trace_}});
  check("POST", "/api/traces", "/api/traces", {{"base", trace_}, {"interventions", changes}});
  check("POST", "/api/traces", "/api/traces",
        {{"text", "the fox"}, {"model", {{"run", "small"}, {"step", 3}}}});
  check("GET", "/api/traces", "/api/traces");
  check("GET", "/api/status", "/api/status");
  check("GET", trace, trace);
  check_array(trace + "/arrays/{point}", trace + "/arrays/resid_pre1");
  check("GET", trace + "/heads", trace + "/heads");
  check_array(trace + "/thumbnails", trace + "/thumbnails");
  const std::string head = trace + "/attention/{site}/{layer}/{head}";
  const std::string first = trace + "/attention/self/1/2";
  check_array(head, first + "?pool=2&values=scores");
  check_array(head + "/tiles/{level}/{row}/{column}", first + "/tiles/0/0/0");
  check_array(head + "/rows/{query}", first + "/rows/4");
  check("GET", head + "/rows/{query}", first + "/rows/4?top=3");
  check_array(head + "/columns/{key}", first + "/columns/1");
  check("GET", head + "/columns/{key}", first + "/columns/1?top=3");
  check_array(head, first + "?unit=words");
  check("GET", head + "/rows/{query}", first + "/rows/4?top=3&unit=words");
  check("GET", head + "/columns/{key}", first + "/columns/1?top=3&unit=words");
  check("GET", trace + "/head", trace + "/head?position=2");
  check("GET", trace + "/gradients", trace + "/gradients");
  check("GET", trace + "/gradients", trace + "/gradients?position=1&token=7");
  check_array("/api/weights/{layer}/{role}", "/api/weights/1/attention.key?head=2&rows=0-4");
  check_array("/api/weights/token_embedding", "/api/weights/token_embedding?rows=5,7");
  check_array("/api/weights/position_embedding", "/api/weights/position_embedding?columns=0-3");
  for (const char* position : {"0", "3", "-1"}) {
    check("GET", trace + "/walk", trace + "/walk?layer=1&head=2&position=" + position);
  }
  check("GET", trace + "/next", trace + "/next?limit=0");
  check("GET", trace + "/compare/{other}", trace + "/compare/t2");
  check("GET", trace + "/lens", trace + "/lens?top=2");
  check("GET", trace + "/effect", "/api/traces/t3/effect");
  for (const char* by : {"component", "head", "neuron", "source", "token"}) {
    check("GET", trace + "/attribution", trace + "/attribution?against=5&top=4&steps=2&by=" + by);
  }
  check("GET", trace + "/attribution", trace + "/attribution");
  check("GET", trace + "/neurons", trace + "/neurons?top=3&by=direct");
  check("GET", trace + "/neurons/effects", trace + "/neurons/effects?layer=5&top=2&neuron=7");
  check("GET", trace + "/causes", trace + "/causes?paths=2&position=2");
  check("GET", trace + "/causes", trace + "/causes?units=neurons&position=2");
  check("GET", "/api/features/{layer}/{feature}", "/api/features/2/17");
  for (const char* point : {"hook_embed", "blocks.1.attn.hook_q", "blocks.1.attn.hook_attn_scores",
                            "blocks.1.attn.hook_pattern", "blocks.1.mlp.hook_post",
                            "ln_final.hook_normalized", "logits"}) {
    check("GET", trace + "/derivation", trace + "/derivation?point=" + std::string(point));
  }
  check("GET", trace + "/projection", trace + "/projection?other=t2");
  check("GET", trace + "/nearest", trace + "/nearest?top=2");
  check("GET", trace + "/directions", trace + "/directions?tokens=3,5&direction=next");
  check("GET", "/api/vectors", "/api/vectors?first=t1:1&second=t2:0");
  check("GET", "/api/neurons/{layer}/{neuron}", "/api/neurons/1/2");
  check("GET", "/api/neurons/{layer}/{neuron}", "/api/neurons/1/2?trace=t1");
  check("GET", "/api/neurons/{layer}/{neuron}/contexts", "/api/neurons/1/2/contexts?top=1");
  check("GET", "/api/probes/culprit", "/api/probes/culprit?text=and%20the%20murderer%20was%20the");
  check("GET", "/api/senses", "/api/senses");
  // Every route that is about a model takes its name.
  check("GET", "/api/senses", "/api/senses?model=starter");
  check("GET", "/api/senses/{word}", "/api/senses/bank?model=starter");
  check("GET", "/api/probes/culprit",
        "/api/probes/culprit?text=and%20the%20murderer%20was%20the&model=starter");
  check("GET", "/api/senses/{word}", "/api/senses/bank");
  check("GET", "/api/senses/{word}", "/api/senses/bank?text=We%20sat%20by%20the%20bank");
  check_events("POST", "/api/generate", "/api/generate",
               {{"text", "One"}, {"max_new_tokens", 2}, {"top", 3}}, 3);

  check("GET", "/api/runs", "/api/runs");
  check("GET", "/api/runs/{name}/metrics", "/api/runs/small/metrics");
  check_events("GET", "/api/runs/{name}/events", "/api/runs/small/events", nullptr, 1);
  check("DELETE", trace, trace);

  const std::string training = "/api/training";
  check("GET", training, training);
  check("POST", training, training,
        {{"settings", {{"layers", 1}, {"heads", 1}, {"width", 16}, {"steps", 20'000}}}}, 201);
  while (explorer_.get(training)["state"].get<std::string>() == "preparing") {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  check("POST", training + "/pause", training + "/pause", Json::object());
  check("POST", training + "/resume", training + "/resume", Json::object());
  check("POST", training + "/learning_rate", training + "/learning_rate", {{"factor", 0.5}});
  check("POST", training + "/stop", training + "/stop", Json::object());

  // Nothing that answers in JSON or events was left out, but for what only a translator can do:
  // explorer_two_texts_test.cc, translator_routes_test.cc; and downloads:
  // explorer_downloads_test.cc.
  const std::set<std::string> of_translators{"/api/translator", trace + "/alignment",
                                             trace + "/influence", trace + "/translation",
                                             trace + "/beams"};
  std::set<std::string> described;
  for (const auto& [path, methods] : document_["paths"].items()) {
    if (of_translators.contains(path) || path.starts_with("/api/downloads/")) continue;
    for (const auto& [method, operation] : methods.items()) {
      const Json& responses = operation["responses"];
      const Json& content = responses[responses.contains("200") ? "200" : "201"]["content"];
      if (!content.contains(json_type) && !content.contains(events_type)) continue;
      std::string capital = method;
      std::ranges::transform(capital, capital.begin(),
                             [](unsigned char c) { return std::toupper(c); });
      described.insert(capital + " " + path);
    }
  }
  EXPECT_EQ(checked_, described);
}

TEST_F(OpenApi, RefusalsAreAsItSays) {
  check("POST", "/v1/completions", "/v1/completions", {{"prompt", 5}}, 400);
  check("POST", "/v1/chat/completions", "/v1/chat/completions", {{"tools", {1}}}, 400);
  check("POST", "/v1/embeddings", "/v1/embeddings", Json::object(), 400);
  check("GET", "/v1/models/{model}", "/v1/models/other", nullptr, 404);
  check("POST", "/api/traces", "/api/traces", Json::object(), 400);
  check("GET", "/api/traces/{id}", "/api/traces/t99", nullptr, 404);
  check("GET", "/api/traces/{id}/heads", "/api/traces/t99/heads", nullptr, 404);
  check("GET", "/api/runs/{name}/metrics", "/api/runs/other/metrics", nullptr, 404);
  check("GET", "/api/parameters", "/api/parameters?config=gpt9", nullptr, 404);
  check("GET", "/api/plan", "/api/plan?config=gpt9&flops=1e9&read=1e9", nullptr, 404);
  check("GET", "/api/plan", "/api/plan?nodes=0&flops=1e9&read=1e9", nullptr, 400);
  check("GET", "/api/vocabulary", "/api/vocabulary?find=a&limit=x", nullptr, 400);
}

TEST_F(OpenApi, ADamagedRunIsAsItSays) {
  write_text_file(directory_ / "small" / "run.json", "[]");
  check("GET", "/api/runs", "/api/runs");
  check("GET", "/api/runs/{name}/events", "/api/runs/small/events", nullptr, 422);
}

TEST_F(OpenApi, FilesAreOfTheTypesThatItNames) {
  const std::string path = "/api/traces/{id}/figure";
  const Json& content = operation("GET", path)["responses"]["200"]["content"];
  for (const char* format : {"svg", "png", "html"}) {
    const Reply reply = explorer_.send("GET", filled(path) + "?format=" + format);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const std::string type = reply.content_type.substr(0, reply.content_type.find(';'));
    EXPECT_TRUE(content.contains(type)) << type;
  }
  EXPECT_TRUE(explorer_.send("GET", "/metrics").content_type.starts_with("text/plain"));
}

}  // namespace
}  // namespace heed::server
