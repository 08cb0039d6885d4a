#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/temporary_directory.h"
#include "generate/generator.h"
#include "server/test_server.h"
#include "support/small_model.h"
#include "tokenizer/utf8.h"
#include "train/evaluation.h"

namespace heed::server {
namespace {

using testing::events;
using testing::streamed_text;
using testing::TestServer;

const TestServer& server() {
  static const TestServer server;
  return server;
}

const LoadedModel& starter() {
  static const LoadedModel model = load_model("starter");
  return model;
}

Json complete(const Json& body, int status = 200) {
  return server().post("/v1/completions", body, status);
}

std::string text(const Json& body) { return complete(body)["choices"][0]["text"]; }

std::string stream(Json body) {
  body["stream"] = true;
  const auto reply = server().client().Post("/v1/completions", body.dump(), "application/json");
  EXPECT_TRUE(reply);
  if (!reply) return "data: [DONE]\n\n";
  EXPECT_EQ(reply->get_header_value("Content-Type"), "text/event-stream");
  return reply->body;
}

const char* const prompt = "One day the fluffy blue";

TEST(Completions, ContinueAsGenerateDoes) {
  const auto ids = starter().encode(prompt);
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    GenerateOptions options{.max_new_tokens = 40};
    options.sampling = {.temperature = 0.9,
                        .top_k = 30,
                        .top_p = 0.9,
                        .min_p = 0.02,
                        .repeat_last_n = -1,
                        .presence_penalty = 0.5,
                        .frequency_penalty = 0.25,
                        .seed = seed};
    const auto expected = generate(starter().gpt, starter().tokenizer.get(), ids, options);
    const Json body{{"prompt", prompt},
                    {"max_tokens", 40},
                    {"temperature", 0.9},
                    {"top_k", 30},
                    {"top_p", 0.9},
                    {"min_p", 0.02},
                    {"seed", seed},
                    {"presence_penalty", 0.5},
                    {"frequency_penalty", 0.25}};
    EXPECT_EQ(text(body), expected.text);
    EXPECT_EQ(streamed_text(stream(body)), expected.text);
  }
}

TEST(Completions, TakePromptsInEveryForm) {
  const auto ids = starter().encode(prompt);
  const Json options{{"max_tokens", 5}, {"temperature", 0}};
  const auto with = [&](const Json& given) {
    Json body = options;
    body["prompt"] = given;
    return complete(body);
  };
  const std::string expected = with(prompt)["choices"][0]["text"];
  EXPECT_EQ(with(ids)["choices"][0]["text"], expected);
  const Json two = with(Json::array({prompt, "Two moles"}));
  ASSERT_EQ(two["choices"].size(), 2U);
  EXPECT_EQ(two["choices"][0]["text"], expected);
  EXPECT_EQ(two["choices"][1]["index"], 1);
  EXPECT_EQ(with(Json::array({ids, starter().encode("Two moles")}))["choices"][1]["text"],
            two["choices"][1]["text"]);
  EXPECT_EQ(with(nullptr)["usage"]["prompt_tokens"], 1);
  EXPECT_EQ(two["usage"]["completion_tokens"], 10);
}

TEST(Completions, ChoicesAreThoseOfTheNextSeeds) {
  const Json body{{"prompt", prompt}, {"max_tokens", 8}, {"seed", 40}, {"n", 3}};
  const Json choices = complete(body)["choices"];
  ASSERT_EQ(choices.size(), 3U);
  const std::string streamed = stream(body);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(choices[i]["index"], i);
    const Json alone{{"prompt", prompt}, {"max_tokens", 8}, {"seed", 40 + i}};
    EXPECT_EQ(choices[i]["text"], text(alone));
    EXPECT_EQ(streamed_text(streamed, i), choices[i]["text"]);
  }
}

double mean(const Json& choice) {
  const auto values = choice["logprobs"]["token_logprobs"].get<std::vector<double>>();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(Completions, BestOfReturnsTheLikeliest) {
  const Json all =
      complete({{"prompt", prompt}, {"max_tokens", 8}, {"seed", 1}, {"n", 6}, {"logprobs", 0}});
  std::vector<double> means;
  for (const Json& choice : all["choices"]) means.push_back(mean(choice));
  std::sort(means.rbegin(), means.rend());
  const Json best = complete({{"prompt", prompt},
                              {"max_tokens", 8},
                              {"seed", 1},
                              {"n", 2},
                              {"best_of", 6},
                              {"logprobs", 0}});
  ASSERT_EQ(best["choices"].size(), 2U);
  EXPECT_EQ(mean(best["choices"][0]), means[0]);
  EXPECT_EQ(mean(best["choices"][1]), means[1]);
  EXPECT_GT(means[0], means[5]);
  EXPECT_EQ(best["usage"]["completion_tokens"], 48);
}

TEST(Completions, BiasesForbidAndForce) {
  const std::int32_t forced = starter().encode(" moon").front();
  const Json body{{"prompt", prompt},
                  {"max_tokens", 3},
                  {"seed", 1},
                  {"logit_bias", {{std::to_string(forced), 100}}}};
  EXPECT_EQ(text(body), starter().tokenizer->decode(std::vector<std::int32_t>(3, forced)));
}

TEST(Completions, StopStringsEndTheTextAndAreNoPartOfIt) {
  const std::string whole = text({{"prompt", prompt}, {"max_tokens", 30}, {"temperature", 0}});
  const std::string stop = whole.substr(12, 5);
  const Json body{
      {"prompt", prompt}, {"max_tokens", 30}, {"temperature", 0}, {"stop", stop}, {"logprobs", 1}};
  const Json choice = complete(body)["choices"][0];
  EXPECT_EQ(choice["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(choice["finish_reason"], "stop");
  std::string joined;
  for (const Json& token : choice["logprobs"]["tokens"]) joined += token.get<std::string>();
  EXPECT_TRUE(joined.starts_with(choice["text"].get<std::string>())) << joined;
  EXPECT_LT(choice["logprobs"]["text_offset"].back().get<std::size_t>(),
            choice["text"].get<std::string>().size());
  EXPECT_EQ(streamed_text(stream(body)), choice["text"]);
}

TEST(Completions, StreamsCarryLogprobsAndUsage) {
  Json body{{"prompt", prompt}, {"max_tokens", 12}, {"seed", 5}, {"logprobs", 3}, {"echo", true}};
  const Json whole = complete(body);
  body["stream_options"] = {{"include_usage", true}};
  Json joined{{"tokens", Json::array()},
              {"token_logprobs", Json::array()},
              {"top_logprobs", Json::array()},
              {"text_offset", Json::array()}};
  const auto sent = events(stream(body));
  for (const Json& event : sent) {
    for (const Json& choice : event["choices"]) {
      for (auto& [name, list] : joined.items()) {
        for (const Json& item : choice["logprobs"][name]) list.push_back(item);
      }
    }
  }
  EXPECT_EQ(joined, whole["choices"][0]["logprobs"]);
  EXPECT_EQ(sent.back()["usage"], whole["usage"]);
  EXPECT_TRUE(sent.back()["choices"].empty());
}

// Losses of tokens[1:] as `heed eval` measures them.
std::vector<float> evaluated(const std::vector<std::int32_t>& tokens) {
  std::vector<float> losses(tokens.size());
  EvaluationOptions options;
  options.scored = [&](std::int64_t first, std::span<const float> scored) {
    std::copy(scored.begin(), scored.end(), losses.begin() + first);
  };
  Evaluator(starter().gpt.config(), options).evaluate(starter().gpt, TokenList(tokens));
  return losses;
}

TEST(Completions, EchoedLogprobsAreThoseOfEval) {
  RandomStream random(3, 0);
  for (const std::size_t length : {2U, 31U, 32U, 33U, 64U, 65U, 128U, 129U, 200U, 256U}) {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < length; ++i) {
      tokens.push_back(static_cast<std::int32_t>(random.below(1536)));
    }
    const std::vector<float> losses = evaluated(tokens);
    for (const int drawn : {0, 1}) {
      const Json choice = complete({{"prompt", tokens},
                                    {"max_tokens", drawn},
                                    {"temperature", 0},
                                    {"echo", true},
                                    {"logprobs", 1}})["choices"][0];
      const Json& values = choice["logprobs"]["token_logprobs"];
      ASSERT_EQ(values.size(), length + static_cast<std::size_t>(drawn));
      EXPECT_TRUE(values[0].is_null());
      for (std::size_t i = 1; i < length; ++i) {
        EXPECT_NEAR(values[i].get<double>(), -losses[i], 1e-6) << length << " " << i;
      }
    }
  }
}

// What lm-eval's loglikelihood reads from a reply.
TEST(Completions, EchoTellsLikelihoodAndGreediness) {
  const auto context = starter().encode(prompt);
  const std::string continuation =
      text({{"prompt", prompt}, {"max_tokens", 6}, {"temperature", 0}});
  const Json choice = complete({{"prompt", prompt + continuation},
                                {"max_tokens", 1},
                                {"temperature", 0},
                                {"logprobs", 1},
                                {"echo", true}})["choices"][0];
  const Json& logprobs = choice["logprobs"];
  EXPECT_TRUE(choice["text"].get<std::string>().starts_with(prompt + continuation));
  for (std::size_t i = context.size(); i + 1 < logprobs["tokens"].size(); ++i) {
    const std::string token = logprobs["tokens"][i];
    const Json& top = logprobs["top_logprobs"][i];
    ASSERT_EQ(top.size(), 1U);
    EXPECT_EQ(top.begin().key(), token);  // the greedy one, for it was drawn greedily
    EXPECT_EQ(top.begin().value(), logprobs["token_logprobs"][i]);
  }
}

TEST(Completions, OffsetsCountCharacters) {
  const std::string given = "é blue ☃ fox";
  const Json logprobs = complete({{"prompt", given},
                                  {"max_tokens", 0},
                                  {"logprobs", 0},
                                  {"echo", true}})["choices"][0]["logprobs"];
  const auto ids = starter().encode(given);
  ASSERT_EQ(logprobs["tokens"].size(), ids.size());
  std::string bytes;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::int64_t characters = 0;  // complete ones before this token
    for (std::size_t at = 0; at < bytes.size();) {
      const Utf8Character character = read_utf8(bytes, at);
      if (!character.valid) break;
      ++characters;
      at += character.length;
    }
    EXPECT_EQ(logprobs["text_offset"][i], characters) << i;
    bytes += starter().token_bytes(ids[i]);
  }
  EXPECT_EQ(logprobs["tokens"][0], "bytes:\\xc3");
}

TEST(Completions, ATextThatFillsTheContextEndsForItsLength) {
  const std::vector<std::int32_t> tokens(255, 5);
  const Json reply =
      complete({{"prompt", tokens}, {"max_tokens", 20}, {"ignore_eos", true}, {"seed", 1}});
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(reply["usage"]["completion_tokens"], 2);
}

TEST(Completions, RefuseWhatCannotBe) {
  struct Case {
    Json fields;
    int status;
    std::string message;
  };
  const std::vector<Case> cases{
      {{{"max_tokens", -1}}, 400, "max_tokens must be a whole number from 0 to 256, not -1"},
      {{{"max_tokens", 257}}, 400, "max_tokens"},
      {{{"max_tokens", 1.5}}, 400, "max_tokens"},
      {{{"max_tokens", "5"}}, 400, "not \"5\""},
      {{{"max_tokens", 18446744073709551615U}}, 400, "max_tokens"},
      {{{"temperature", -0.1}}, 400, "temperature"},
      {{{"temperature", "hot"}}, 400, "temperature must be a number"},
      {{{"top_p", 1.01}}, 400, "top_p"},
      {{{"n", 0}}, 400, "n must be"},
      {{{"n", 129}}, 400, "n must be"},
      {{{"n", 3}, {"best_of", 2}}, 400, "best_of (2)"},
      {{{"best_of", 2}, {"stream", true}}, 400, "cannot be streamed"},
      {{{"stream", 1}}, 400, "stream must be true or false"},
      {{{"stop", ""}}, 400, "stop string"},
      {{{"stop", {1}}}, 400, "stop must hold strings"},
      {{{"stop", std::vector<std::string>(17, "a")}}, 400, "stop"},
      {{{"logprobs", 21}}, 400, "logprobs"},
      {{{"logprobs", true}}, 400, "logprobs"},
      {{{"logit_bias", {{"1536", 1}}}}, 400, "no token id from 0 to 1535"},
      {{{"logit_bias", {{"x", 1}}}}, 400, "logit_bias"},
      {{{"logit_bias", {{"1", 101}}}}, 400, "-100 to 100"},
      {{{"logit_bias", {1}}}, 400, "logit_bias"},
      {{{"presence_penalty", 3}}, 400, "presence_penalty"},
      {{{"prompt", 5}}, 400, "prompt must be a string"},
      {{{"prompt", {{"a", 1}}}}, 400, "prompt must be a string"},
      {{{"prompt", {1, "a"}}}, 400, "no token id"},
      {{{"prompt", {1536}}}, 400, "no token id"},
      {{{"prompt", {-1}}}, 400, "no token id"},
      {{{"prompt", {4294967301}}}, 400, "no token id"},
      {{{"prompt", std::vector<std::int32_t>(257, 5)}}, 400, "257 tokens"},
      {{{"prompt", std::vector<std::string>(257, "a")}}, 400, "256 texts"},
      {{{"prompt", std::vector<std::string>(256, "a")}, {"n", 3}}, 400, "768 texts"},
      {{{"suffix", "x"}}, 422, "suffix"},
      {{{"model", "gpt-4"}}, 404, "no model 'gpt-4'"},
      {{{"model", 4}}, 400, "model must be a string"},
      {{{"stream_options", 1}}, 400, "stream_options"},
  };
  for (const Case& refused : cases) {
    Json body = refused.fields;
    if (!body.contains("prompt")) body["prompt"] = prompt;
    const Json reply = complete(body, refused.status);
    EXPECT_EQ(reply["error"]["code"], refused.status);
    EXPECT_NE(reply["error"]["message"].get<std::string>().find(refused.message), std::string::npos)
        << reply.dump();
  }
}

TEST(Service, TokenizesAndBack) {
  const Json tokens = server().post("/tokenize", {{"content", prompt}})["tokens"];
  EXPECT_EQ(tokens, Json(starter().encode(prompt)));
  EXPECT_EQ(server().post("/detokenize", {{"tokens", tokens}})["content"], prompt);
  const Json pieces =
      server().post("/tokenize", {{"content", "é"}, {"with_pieces", true}})["tokens"];
  EXPECT_EQ(pieces[0]["piece"], Json::array({0xC3}));
  server().post("/detokenize", {{"tokens", {1536}}}, 400);
  server().post("/tokenize", {{"content", 5}}, 400);
}

TEST(Service, CallsAModelByItsDirectoryAlone) {
  const heed::testing::TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() / "elsewhere/fables");
  save_gpt(heed::testing::small_gpt(40), directory.path() / "elsewhere/fables");
  ServeOptions options;
  options.face = Face::explorer;
  const std::string path = directory.path().string() + "/elsewhere/../elsewhere/fables/";
  const TestServer server(options, path);
  EXPECT_EQ(server.get("/v1/models")["data"][0]["id"], "fables");
  EXPECT_EQ(server.get("/v1/models/fables")["id"], "fables");
  EXPECT_EQ(server.get("/api/model")["name"], "fables");
  EXPECT_EQ(server.get("/props")["model_path"], "fables");
  const Json refusal = server.post("/tokenize", {{"content", "a"}}, 404);
  EXPECT_EQ(refusal.dump().find("elsewhere"), std::string::npos) << refusal;
  ServeOptions named = options;
  named.alias = "aesop";
  EXPECT_EQ(TestServer(named, path).get("/api/model")["name"], "aesop");
  // Under another name the starter keeps what is known of it.
  const TestServer starter(named);
  EXPECT_EQ(starter.get("/api/model")["name"], "aesop");
  EXPECT_TRUE(starter.get("/api/model")["examples"][0].contains("head"));
}

TEST(Service, Embeds) {
  const auto embed = [](Json body) { return server().post("/v1/embeddings", body)["data"]; };
  const Json both = embed({{"input", {prompt, "Two moles"}}});
  ASSERT_EQ(both.size(), 2U);
  for (const Json& one : both) {
    double squares = 0;
    for (const Json& value : one["embedding"]) squares += std::pow(value.get<double>(), 2);
    EXPECT_EQ(one["embedding"].size(), 192U);
    EXPECT_NEAR(squares, 1, 1e-5);
  }
  EXPECT_EQ(embed({{"input", starter().encode(prompt)}})[0]["embedding"], both[0]["embedding"]);
  EXPECT_NE(embed({{"input", prompt}, {"pooling", "last"}})[0]["embedding"], both[0]["embedding"]);
  EXPECT_EQ(embed({{"input", prompt}, {"encoding_format", "base64"}})[0]["embedding"]
                .get<std::string>()
                .size(),
            1024U);  // 4 · ⌈768 / 3⌉
  server().post("/v1/embeddings", Json::object(), 400);
  server().post("/v1/embeddings", {{"input", prompt}, {"dimensions", 7}}, 422);
}

TEST(Service, TellsOfItself) {
  EXPECT_EQ(server().get("/health")["status"], "ok");
  EXPECT_EQ(server().get("/v1/models")["data"][0]["id"], "starter");
  EXPECT_EQ(server().get("/v1/models/starter")["object"], "model");
  server().get("/v1/models/other", 404);
  EXPECT_EQ(server().get("/props")["default_generation_settings"]["n_ctx"], 256);
  const std::string metrics = server().client().Get("/metrics")->body;
  for (const char* line : {"# TYPE heed:prompt_tokens_total counter\n", "\nheed:requests_open 0\n",
                           "\nllamacpp:tokens_predicted_total "}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace heed::server
