// POST /v1/translations, and what a server of a translator does not answer.
#include "server/translations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/openapi.h"
#include "server/openapi_schema.h"
#include "server/translation_server.h"

namespace heed::server {
namespace {

using ::testing::HasSubstr;
using testing::TranslationServer;

TEST(Translations, AreThoseOfTheSearch) {
  TranslationServer server;
  const Json reply = server.post(
      "/v1/translations",
      {{"model", "any"}, {"input", {"the dog", "a bird sees the cat"}}, {"beams", 3}, {"n", 2}});
  EXPECT_TRUE(reply["object"] == "translation");
  EXPECT_TRUE(reply["model"] == "small");
  const LoadedModel& translator = server.translator();
  SourceTokens sources;
  sources.add(translator.encode_source("the dog", "a"));
  sources.add(translator.encode_source("a bird sees the cat", "b"));
  const auto found = translator.translate(sources, {.beams = 3, .n_best = 2});
  ASSERT_EQ(reply["choices"].size(), 4U);
  std::int64_t written = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const Json& choice = reply["choices"][i];
    const TokenHypothesis& expected = found[i / 2][i % 2];
    EXPECT_EQ(choice["index"].get<std::size_t>(), i);
    EXPECT_EQ(choice["input"].get<std::size_t>(), i / 2);
    EXPECT_EQ(choice["text"].get<std::string>(), translator.target_text(expected.tokens));
    EXPECT_EQ(choice["score"].get<double>(), expected.score);
    EXPECT_EQ(choice["log_probability"].get<double>(), expected.log_probability);
    EXPECT_EQ(choice["finish_reason"].get<std::string>(), expected.finished ? "stop" : "length");
    ASSERT_EQ(choice["tokens"].size(), expected.tokens.size());
    for (std::size_t t = 0; t < expected.tokens.size(); ++t) {
      EXPECT_EQ(choice["tokens"][t]["id"].get<std::int32_t>(), expected.tokens[t]);
    }
    written += std::ssize(expected.tokens);
  }
  const Json& usage = reply["usage"];
  EXPECT_EQ(usage["prompt_tokens"].get<std::int64_t>(), std::ssize(sources.tokens));
  EXPECT_EQ(usage["completion_tokens"].get<std::int64_t>(), written);
  EXPECT_EQ(usage["total_tokens"].get<std::int64_t>(), written + std::ssize(sources.tokens));
}

TEST(Translations, OptionsAreTheSearchs) {
  TranslationServer server;
  const auto choice = [&](const Json& options) {
    Json body{{"input", "the dog sees"}};
    body.update(options);
    return server.post("/v1/translations", body)["choices"][0];
  };
  EXPECT_EQ(choice({{"max_tokens", 3}})["tokens"].size(), 3U);
  const Json penalised = choice({{"length_penalty", 0}, {"max_tokens", 4}});
  EXPECT_EQ(penalised["score"].get<double>(), penalised["log_probability"].get<double>());
}

TEST(Translations, BadRequestsNameTheirField) {
  TranslationServer server;
  const auto refused = [&](const Json& body, const std::string& field, const std::string& message) {
    const Json error = server.post("/v1/translations", body, 400)["error"];
    EXPECT_EQ(error["param"].get<std::string>(), field) << error;
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(message));
  };
  refused(Json::object(), "input", "no \"input\"");
  refused({{"input", 5}}, "input", "must be a string or up to 256");
  refused({{"input", Json::array()}}, "input", "holds no texts");
  refused({{"input", Json::array({"the dog", 3})}}, "input", "must hold strings");
  refused({{"input", ""}}, "input", "input is empty");
  refused({{"input", {"the dog", "  "}}}, "input[1]", "input[1] is empty");
  refused({{"input", {std::string(300, 'x')}}}, "input[0]", "more than the 32");
  refused({{"input", std::vector<std::string>(257, "a")}}, "input", "up to 256");
  refused({{"input", "a"}, {"beams", 0}}, "beams", "from 1 to 64");
  refused({{"input", "a"}, {"beams", 2}, {"n", 3}}, "n",
          "n (3) must not be greater than beams (2)");
  refused({{"input", "a"}, {"length_penalty", "x"}}, "length_penalty", "must be a number");
  refused({{"input", "a"}, {"max_tokens", 33}}, "max_tokens", "from 1 to 32");
}

TEST(Translations, OtherEndpointsSayWhatTheModelIs) {
  TranslationServer server;
  for (const char* path :
       {"/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/tokenize", "/detokenize"}) {
    const Json error = server.post(path, {{"prompt", "a"}}, 422)["error"];
    EXPECT_THAT(error["message"].get<std::string>(),
                HasSubstr("'small' is a translator and does not answer " + std::string(path) +
                          "; POST /v1/translations"));
  }
  EXPECT_EQ(server.send("GET", "/props").status, 422);
  EXPECT_EQ(server.send("GET", "/health").status, 200);
  EXPECT_EQ(server.send("GET", "/v1/models/small").status, 200);
  EXPECT_EQ(server.send("GET", "/v1/models/other").status, 404);
}

TEST(Translations, AnswersAreAsTheDocumentSays) {
  TranslationServer server;
  const Json document = Json::parse(openapi_document());
  const testing::SchemaChecker checker(document);
  for (const auto& [path, method] : {std::pair("/v1/translations", "post"),
                                     std::pair("/health", "get"), std::pair("/v1/models", "get")}) {
    const Json reply =
        std::string(method) == "post"
            ? server.post(path, {{"input", {"the dog", "a bird"}}, {"n", 2}, {"max_tokens", 4}})
            : Json::parse(server.send("GET", path).body);
    const Json& schema = document["paths"][path][method]["responses"]["200"]["content"]
                                 ["application/json"]["schema"];
    EXPECT_THAT(checker.faults(reply, schema), ::testing::IsEmpty()) << path;
  }
  // Every route is described.
  for (const Router::Route& route : server.router().routes()) {
    EXPECT_TRUE(document["paths"].contains(route.pattern)) << route.pattern;
  }
}

TEST(Translations, AreCounted) {
  TranslationServer server;
  server.post("/v1/translations", {{"input", "the dog"}, {"max_tokens", 4}, {"beams", 1}});
  const std::string metrics = server.send("GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("heed:requests_total 1"));
}

}  // namespace
}  // namespace heed::server
