// Names, tokenization, embeddings, and what the server tells of itself.
#include <gtest/gtest.h>

#include <cmath>

#include "base/temporary_directory.h"
#include "server/test_server.h"
#include "support/small_model.h"

namespace heed::server {
namespace {

using testing::starter_model;
using testing::starter_prompt;
using testing::starter_server;
using testing::TestServer;

TEST(Service, TokenizesAndBack) {
  const Json tokens = starter_server().post("/tokenize", {{"content", starter_prompt}})["tokens"];
  EXPECT_EQ(tokens, Json(starter_model().encode(starter_prompt)));
  EXPECT_EQ(starter_server().post("/detokenize", {{"tokens", tokens}})["content"], starter_prompt);
  const Json pieces =
      starter_server().post("/tokenize", {{"content", "é"}, {"with_pieces", true}})["tokens"];
  EXPECT_EQ(pieces[0]["piece"], Json::array({0xC3}));
  starter_server().post("/detokenize", {{"tokens", {2531}}}, 400);
  starter_server().post("/tokenize", {{"content", 5}}, 400);
}

// A reply is no larger than the text that it is asked for, and has at most so many tokens.
TEST(Service, TokenizesUpToAStatedNumberOfTokens) {
  const std::size_t most = std::size_t{1} << 20;
  const std::string dots(most + 2, '\x7F');  // each a token
  const std::size_t count = starter_model().encode(dots).size();
  ASSERT_GT(count, most);
  const Json refusal = starter_server().post("/tokenize", {{"content", dots}}, 400);
  EXPECT_NE(refusal.dump().find(std::to_string(most)), std::string::npos) << refusal;
  const Json some = starter_server().post(
      "/tokenize", {{"content", "a\x01\"\xC3\xA9"}, {"with_pieces", true}})["tokens"];
  const auto ids = starter_model().encode("a\x01\"\xC3\xA9");
  ASSERT_EQ(some.size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(some[i]["id"], ids[i]);
  EXPECT_EQ(starter_server().post("/tokenize", {{"content", ""}})["tokens"], Json::array());
}

TEST(Service, CallsAModelByItsDirectoryAlone) {
  const heed::testing::TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() / "elsewhere/fables");
  save_transformer(heed::testing::small_gpt(40), directory.path() / "elsewhere/fables");
  ServeOptions options;
  options.face = Face::explorer;
  const std::string path = directory.path().string() + "/elsewhere/../elsewhere/fables/";
  const TestServer server(options, path);
  EXPECT_EQ(server.get("/v1/models")["data"][0]["id"], "fables");
  EXPECT_EQ(server.get("/v1/models/fables")["id"], "fables");
  EXPECT_EQ(server.get("/api/model")["name"], "fables");
  EXPECT_EQ(server.get("/props")["model_path"], "fables");
  // Nothing has been measured of it: it is offered sentences, and no head is named.
  bool has_mole = false;
  const Json model = server.get("/api/model");
  for (const Json& example : model["examples"]) {
    has_mole |= example["text"].get<std::string>() == "One mole of carbon dioxide";
    EXPECT_FALSE(example.contains("head") || example.contains("trials")) << example;
  }
  EXPECT_TRUE(has_mole);
  const Json refusal = server.post("/tokenize", {{"content", "a"}}, 404);
  EXPECT_EQ(refusal.dump().find("elsewhere"), std::string::npos) << refusal;
  ServeOptions named = options;
  named.aliases = {"aesop"};
  EXPECT_EQ(TestServer(named, path).get("/api/model")["name"], "aesop");
  // Under another name the starter keeps what is known of it.
  const TestServer starter(named);
  EXPECT_EQ(starter.get("/api/model")["name"], "aesop");
  EXPECT_TRUE(starter.get("/api/model")["examples"][0].contains("head"));
}

TEST(Service, AnAliasMayHoldASlash) {
  ServeOptions options;
  options.aliases = {"org/small", "small"};
  const TestServer server(options);
  EXPECT_EQ(server.get("/v1/models")["data"][0]["id"], "org/small");
  for (const char* path : {"/v1/models/org/small", "/v1/models/org%2Fsmall"}) {
    EXPECT_EQ(server.get(path)["id"], "org/small") << path;
  }
  EXPECT_EQ(server.get("/v1/models/small")["id"], "small");
  EXPECT_EQ(server.get("/v1/models/org/other", 404)["error"]["code"], "model_not_found");
}

TEST(Service, Embeds) {
  const auto embed = [](Json body) {
    return starter_server().post("/v1/embeddings", body)["data"];
  };
  const Json both = embed({{"input", {starter_prompt, "Two moles"}}});
  ASSERT_EQ(both.size(), 2U);
  for (const Json& one : both) {
    double squares = 0;
    for (const Json& value : one["embedding"]) squares += std::pow(value.get<double>(), 2);
    EXPECT_EQ(one["embedding"].size(), 192U);
    EXPECT_NEAR(squares, 1, 1e-5);
  }
  EXPECT_EQ(embed({{"input", starter_model().encode(starter_prompt)}})[0]["embedding"],
            both[0]["embedding"]);
  EXPECT_NE(embed({{"input", starter_prompt}, {"pooling", "last"}})[0]["embedding"],
            both[0]["embedding"]);
  EXPECT_EQ(embed({{"input", starter_prompt}, {"encoding_format", "base64"}})[0]["embedding"]
                .get<std::string>()
                .size(),
            1024U);  // 4 · ⌈768 / 3⌉
  starter_server().post("/v1/embeddings", Json::object(), 400);
  starter_server().post("/v1/embeddings", {{"input", starter_prompt}, {"dimensions", 7}}, 400);
}

TEST(Service, AnswersToItsAliasesAndToAnyName) {
  ServeOptions options;
  options.aliases = {"fables", "gpt-4o"};
  const TestServer server(options);
  const Json data = server.get("/v1/models")["data"];
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data[0]["id"], "fables");
  EXPECT_EQ(data[1]["id"], "gpt-4o");
  EXPECT_EQ(server.get("/v1/models/gpt-4o")["id"], "gpt-4o");
  const Json unknown = server.get("/v1/models/starter", 404)["error"];
  EXPECT_EQ(unknown["code"], "model_not_found");
  EXPECT_EQ(unknown["param"], "model");
  for (const char* name : {"fables", "gpt-4o", "whatever"}) {
    const Json body{{"model", name}, {"prompt", "a"}, {"max_tokens", 1}, {"input", "a"}};
    EXPECT_EQ(server.post("/v1/completions", body)["model"], "fables");
    EXPECT_EQ(server.post("/v1/embeddings", body)["model"], "fables");
  }
}

TEST(Service, TellsOfItself) {
  EXPECT_EQ(starter_server().get("/health")["status"], "ok");
  EXPECT_EQ(starter_server().get("/v1/models")["data"][0]["id"], "starter");
  EXPECT_EQ(starter_server().get("/v1/models/starter")["object"], "model");
  starter_server().get("/v1/models/other", 404);
  EXPECT_EQ(starter_server().get("/props")["default_generation_settings"]["n_ctx"], 256);
  const std::string metrics = starter_server().client().Get("/metrics")->body;
  for (const char* line : {"# TYPE heed:prompt_tokens_total counter\n", "\nheed:requests_open 0\n",
                           "\nllamacpp:tokens_predicted_total "}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace heed::server
