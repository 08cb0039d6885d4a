#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/utf8.h"
#include "generate/generator.h"
#include "server/test_server.h"
#include "train/evaluation.h"

namespace heed::server {
namespace {

using testing::events;
using testing::starter_model;
using testing::starter_prompt;
using testing::starter_server;
using testing::streamed_text;

Json complete(const Json& body, int status = 200) {
  return starter_server().post("/v1/completions", body, status);
}

std::string text(const Json& body) { return complete(body)["choices"][0]["text"]; }

std::string streamed_completion(const Json& body) {
  return starter_server().stream("/v1/completions", body);
}

TEST(Completions, ContinueAsGenerateDoes) {
  const auto ids = starter_model().encode(starter_prompt);
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
    const auto expected =
        generate(starter_model().transformer, starter_model().tokenizer.get(), ids, options);
    const Json body{{"prompt", starter_prompt},
                    {"max_tokens", 40},
                    {"temperature", 0.9},
                    {"top_k", 30},
                    {"top_p", 0.9},
                    {"min_p", 0.02},
                    {"seed", seed},
                    {"presence_penalty", 0.5},
                    {"frequency_penalty", 0.25}};
    EXPECT_EQ(text(body), expected.text);
    EXPECT_EQ(streamed_text(streamed_completion(body)), expected.text);
  }
}

TEST(Completions, TakePromptsInEveryForm) {
  const auto ids = starter_model().encode(starter_prompt);
  const Json options{{"max_tokens", 5}, {"temperature", 0}};
  const auto with = [&](const Json& given) {
    Json body = options;
    body["prompt"] = given;
    return complete(body);
  };
  const std::string expected = with(starter_prompt)["choices"][0]["text"];
  EXPECT_EQ(with(ids)["choices"][0]["text"], expected);
  const Json two = with(Json::array({starter_prompt, "Two moles"}));
  ASSERT_EQ(two["choices"].size(), 2U);
  EXPECT_EQ(two["choices"][0]["text"], expected);
  EXPECT_EQ(two["choices"][1]["index"], 1);
  EXPECT_EQ(with(Json::array({ids, starter_model().encode("Two moles")}))["choices"][1]["text"],
            two["choices"][1]["text"]);
  EXPECT_EQ(with(nullptr)["usage"]["prompt_tokens"], 1);
  EXPECT_EQ(two["usage"]["completion_tokens"], 10);
}

TEST(Completions, ChoicesAreThoseOfTheNextSeeds) {
  const Json body{{"prompt", starter_prompt}, {"max_tokens", 8}, {"seed", 40}, {"n", 3}};
  const Json choices = complete(body)["choices"];
  ASSERT_EQ(choices.size(), 3U);
  const std::string streamed = streamed_completion(body);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(choices[i]["index"], i);
    const Json alone{{"prompt", starter_prompt}, {"max_tokens", 8}, {"seed", 40 + i}};
    EXPECT_EQ(choices[i]["text"], text(alone));
    EXPECT_EQ(choices[i]["text"], streamed_text(streamed, i));
  }
}

double mean(const Json& choice) {
  const auto values = choice["logprobs"]["token_logprobs"].get<std::vector<double>>();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(Completions, BestOfReturnsTheLikeliest) {
  const Json all = complete(
      {{"prompt", starter_prompt}, {"max_tokens", 8}, {"seed", 1}, {"n", 6}, {"logprobs", 0}});
  std::vector<double> means;
  for (const Json& choice : all["choices"]) means.push_back(mean(choice));
  std::sort(means.rbegin(), means.rend());
  const Json best = complete({{"prompt", starter_prompt},
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
  const std::int32_t forced = starter_model().encode(" moon").front();
  const Json body{{"prompt", starter_prompt},
                  {"max_tokens", 3},
                  {"seed", 1},
                  {"logit_bias", {{std::to_string(forced), 100}}}};
  EXPECT_EQ(text(body), starter_model().tokenizer->decode(std::vector<std::int32_t>(3, forced)));
}

TEST(Completions, StopStringsEndTheTextAndAreNoPartOfIt) {
  const std::string whole =
      text({{"prompt", starter_prompt}, {"max_tokens", 30}, {"temperature", 0}});
  const std::string stop = whole.substr(12, 5);
  const Json body{{"prompt", starter_prompt},
                  {"max_tokens", 30},
                  {"temperature", 0},
                  {"stop", stop},
                  {"logprobs", 1}};
  const Json choice = complete(body)["choices"][0];
  EXPECT_EQ(choice["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(choice["finish_reason"], "stop");
  std::string joined;
  for (const Json& token : choice["logprobs"]["tokens"]) joined += token.get<std::string>();
  EXPECT_TRUE(joined.starts_with(choice["text"].get<std::string>())) << joined;
  EXPECT_LT(choice["logprobs"]["text_offset"].back().get<std::size_t>(),
            choice["text"].get<std::string>().size());
  EXPECT_EQ(choice["text"], streamed_text(streamed_completion(body)));
}

TEST(Completions, StreamsCarryLogprobsAndUsage) {
  Json body{
      {"prompt", starter_prompt}, {"max_tokens", 12}, {"seed", 5}, {"logprobs", 3}, {"echo", true}};
  const Json whole = complete(body);
  body["stream_options"] = {{"include_usage", true}};
  Json joined{{"tokens", Json::array()},
              {"token_logprobs", Json::array()},
              {"top_logprobs", Json::array()},
              {"text_offset", Json::array()}};
  const auto sent = events(streamed_completion(body));
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
  Evaluator(starter_model().transformer.specification(), options)
      .evaluate(starter_model().transformer, TokenList(tokens));
  return losses;
}

TEST(Completions, EchoedLogprobsAreThoseOfEval) {
  RandomStream random(3, 0);
  for (const std::size_t length : {2U, 31U, 32U, 33U, 64U, 65U, 128U, 129U, 200U, 256U}) {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < length; ++i) {
      tokens.push_back(static_cast<std::int32_t>(random.below(2531)));
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
  const auto context = starter_model().encode(starter_prompt);
  const std::string continuation =
      text({{"prompt", starter_prompt}, {"max_tokens", 6}, {"temperature", 0}});
  const Json choice = complete({{"prompt", starter_prompt + continuation},
                                {"max_tokens", 1},
                                {"temperature", 0},
                                {"logprobs", 1},
                                {"echo", true}})["choices"][0];
  const Json& logprobs = choice["logprobs"];
  EXPECT_TRUE(choice["text"].get<std::string>().starts_with(starter_prompt + continuation));
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
  const auto ids = starter_model().encode(given);
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
    bytes += starter_model().token_bytes(ids[i]);
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

TEST(Completions, MaxTokensIsClampedToWhatFits) {
  const std::vector<std::int32_t> tokens(250, 5);
  const auto complete_with = [&](Json fields) {
    fields.update({{"prompt", tokens}, {"ignore_eos", true}, {"seed", 1}});
    return complete(fields);
  };
  const Json large = complete_with({{"max_tokens", 100000}});
  EXPECT_EQ(large["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(large["usage"]["completion_tokens"], 7);
  EXPECT_EQ(complete_with({{"max_completion_tokens", 3}})["usage"]["completion_tokens"], 3);
  const Json both = complete_with({{"max_completion_tokens", 3}, {"max_tokens", 5}});
  EXPECT_EQ(both["usage"]["completion_tokens"], 3);
}

TEST(Completions, SampleAsTheCommandLineDoes) {
  GenerateOptions options{.max_new_tokens = 60};
  options.sampling.seed = 11;
  const auto ids = starter_model().encode(starter_prompt);
  const auto expected =
      generate(starter_model().transformer, starter_model().tokenizer.get(), ids, options);
  EXPECT_EQ(text({{"prompt", starter_prompt}, {"max_tokens", 60}, {"seed", 11}}), expected.text);
  const Json defaults = starter_server().get("/props")["default_generation_settings"]["params"];
  const SamplingOptions sampling;
  EXPECT_EQ(defaults["temperature"], sampling.temperature);
  EXPECT_EQ(defaults["top_k"], sampling.top_k);
  EXPECT_EQ(defaults["top_p"], sampling.top_p);
  EXPECT_EQ(defaults["min_p"], sampling.min_p);
  EXPECT_EQ(defaults["repeat_last_n"], sampling.repeat_last_n);
}

TEST(Completions, ErrorsNameTheirFieldAndCode) {
  struct Case {
    Json fields;
    std::string param;
    std::string code;
  };
  const std::vector<Case> cases{
      {{{"temperature", "hot"}}, "temperature", "invalid_type"},
      {{{"temperature", -1}}, "temperature", "invalid_value"},
      {{{"stream_options", {{"include_usage", 1}}}},
       "stream_options.include_usage",
       "invalid_type"},
      {{{"prompt", std::vector<std::int32_t>(257, 5)}}, "prompt", "context_length_exceeded"},
      {{{"logit_bias", {{"x", 1}}}}, "logit_bias", "invalid_value"},
      {{{"tools", {{{"type", "function"}}}}}, "tools", "unsupported_parameter"},
  };
  for (const Case& refused : cases) {
    Json body = refused.fields;
    if (!body.contains("prompt")) body["prompt"] = starter_prompt;
    const Json error = complete(body, 400)["error"];
    EXPECT_EQ(error["param"], refused.param) << error;
    EXPECT_EQ(error["code"], refused.code) << error;
  }
  const Json missing = starter_server().post("/v1/embeddings", Json::object(), 400)["error"];
  EXPECT_EQ(missing["param"], "input");
  EXPECT_EQ(missing["code"], "missing_required_parameter");
  const Json nowhere = starter_server().get("/v1/nothing", 404)["error"];
  EXPECT_EQ(nowhere, (Json{{"message", nowhere["message"]},
                           {"type", "not_found_error"},
                           {"param", nullptr},
                           {"code", "not_found"}}));
}

std::string warning_of(const std::string& path, const Json& body) {
  const auto reply = starter_server().client().Post(path, body.dump(), "application/json");
  EXPECT_TRUE(reply);
  if (!reply) return "";
  EXPECT_EQ(reply->status, 200) << reply->body;
  return reply->get_header_value("X-Heed-Warning");
}

TEST(Completions, WarnOfFieldsThatAreIgnored) {
  const auto warning = [](Json fields) {
    fields.update({{"prompt", starter_prompt}, {"max_tokens", 1}});
    return warning_of("/v1/completions", fields);
  };
  EXPECT_EQ(warning({{"user", "a"}, {"metadata", {{"b", "c"}}}, {"store", true}}), "");
  EXPECT_EQ(warning({{"mirostat_tau", 5}, {"cache_prompt", true}}),
            "ignored fields: cache_prompt, mirostat_tau");
  EXPECT_EQ(warning({{"cache_prompt", true}, {"stream", true}}), "ignored fields: cache_prompt");
  EXPECT_EQ(warning({{"cache_prompt", nullptr}, {"stop", nullptr}, {"anything", nullptr}}), "");
  // Samplers that are turned off.
  EXPECT_EQ(warning({{"mirostat", 0}, {"typical_p", 1.0}, {"xtc_probability", 0.0}}), "");
  EXPECT_EQ(warning({{"guided_json", nullptr}, {"use_beam_search", false}}), "");
  // Values of unsupported fields that ask for nothing.
  EXPECT_EQ(warning({{"suffix", ""},
                     {"tools", Json::array()},
                     {"tool_choice", "none"},
                     {"response_format", {{"type", "text"}}}}),
            "");
  // Names come from the client: they must neither end the header nor flood it.
  EXPECT_EQ(warning({{"a\r\nSet-Cookie: b", 1}}), "ignored fields: a??Set-Cookie??b");
  EXPECT_EQ(warning({{std::string(50, 'x'), 1}}),
            "ignored fields: " + std::string(40, 'x') + "...");
  Json many;
  for (int i = 100; i < 200; ++i) many["f" + std::to_string(i)] = 1;
  const std::string listed = warning(many);
  EXPECT_TRUE(listed.ends_with(", f115 and 84 more")) << listed;
  EXPECT_EQ(warning_of("/v1/embeddings", {{"input", "a"}, {"truncate", true}}),
            "ignored fields: truncate");
}

TEST(Completions, RefuseFieldsOfOtherServersThatWouldChangeTheReply) {
  const Json fields[] = {{{"mirostat", 2}},
                         {{"typical_p", 0.9}},
                         {{"guided_regex", "a*"}},
                         {{"guided_something_new", 1}},
                         {{"use_beam_search", true}},
                         {{"bad_words", {"hare"}}},
                         {{"allowed_token_ids", {1, 2}}}};
  for (const Json& field : fields) {
    Json body{{"prompt", starter_prompt}, {"max_tokens", 1}};
    body.update(field);
    const Json error = starter_server().post("/v1/completions", body, 400)["error"];
    EXPECT_EQ(error["code"], "unsupported_parameter") << field;
    EXPECT_EQ(error["param"], field.begin().key());
  }
  const Json messages = Json::array({{{"role", "user"}, {"content", "Hello"}}});
  for (const char* field : {"echo", "best_of"}) {
    const Json error =
        starter_server().post("/v1/chat/completions",
                              {{"messages", messages},
                               {"max_tokens", 1},
                               {field, field == std::string("echo") ? Json(true) : Json(2)}},
                              400)["error"];
    EXPECT_EQ(error["param"], field);
  }
}

TEST(Completions, StopTokensEndTheTextAndAreNoPartOfIt) {
  const auto prompt = starter_model().encode(starter_prompt);
  const std::vector<std::int32_t> drawn =
      generate(starter_model().transformer, starter_model().tokenizer.get(), prompt,
               {.max_new_tokens = 12, .sampling = {.temperature = 0}})
          .tokens;
  ASSERT_EQ(drawn.size(), 12U);
  const std::int32_t stop = drawn[4];
  const auto first = std::ranges::find(drawn, stop) - drawn.begin();
  Json body{{"prompt", starter_prompt}, {"max_tokens", 12}, {"temperature", 0}};
  body["stop_token_ids"] = {stop};
  const Json stopped = starter_server().post("/v1/completions", body)["choices"][0];
  EXPECT_EQ(stopped["finish_reason"], "stop");
  const std::string before =
      starter_model().tokenizer->decode(std::span(drawn).first(static_cast<std::size_t>(first)));
  EXPECT_EQ(stopped["text"], before);
  // Before so many tokens, none of them is sampled.
  body["min_tokens"] = first + 3;
  const Json later = starter_server().post("/v1/completions", body);
  EXPECT_GE(later["usage"]["completion_tokens"], first + 3);
  EXPECT_NE(later["choices"][0]["text"], before);
  body["min_tokens"] = 13;
  EXPECT_EQ(starter_server().post("/v1/completions", body, 400)["error"]["param"], "min_tokens");
  body["min_tokens"] = 0;
  body["stop_token_ids"] = {-1};
  EXPECT_EQ(starter_server().post("/v1/completions", body, 400)["error"]["param"],
            "stop_token_ids");
}

TEST(Completions, UnderstandTheNamesOfOtherServers) {
  const auto text_of = [](Json fields) {
    fields.update({{"prompt", starter_prompt}, {"temperature", 0}});
    return starter_server().post("/v1/completions", fields)["choices"][0]["text"];
  };
  EXPECT_EQ(text_of({{"n_predict", 9}}), text_of({{"max_tokens", 9}}));
  EXPECT_NE(text_of({{"n_predict", 9}}), text_of({{"max_tokens", 16}}));
  EXPECT_EQ(text_of({{"n_predict", 3}, {"max_tokens", 9}}), text_of({{"max_tokens", 9}}));
  EXPECT_EQ(text_of({{"repetition_penalty", 1.9}, {"max_tokens", 30}}),
            text_of({{"repeat_penalty", 1.9}, {"repeat_last_n", -1}, {"max_tokens", 30}}));
  EXPECT_NE(text_of({{"repetition_penalty", 1.9}, {"max_tokens", 30}}),
            text_of({{"max_tokens", 30}}));
  const Json error = starter_server().post(
      "/v1/completions", {{"prompt", "a"}, {"repetition_penalty", 1.9}, {"repeat_penalty", 1.2}},
      400)["error"];
  EXPECT_EQ(error["param"], "repetition_penalty");
}

TEST(Completions, TopNSigmaIsAFilter) {
  const auto text_of = [](Json fields) {
    fields.update({{"prompt", starter_prompt}, {"max_tokens", 20}, {"seed", 4}});
    return starter_server().post("/v1/completions", fields)["choices"][0]["text"];
  };
  EXPECT_EQ(text_of({{"top_n_sigma", 1e-6}, {"temperature", 2}}), text_of({{"temperature", 0}}));
  EXPECT_EQ(text_of({{"top_n_sigma", -1}}), text_of(Json::object()));
}

TEST(Completions, SeedMinusOneIsRandom) {
  std::set<std::string> texts;
  for (int i = 0; i < 6; ++i) {
    texts.insert(
        starter_server().post("/v1/completions", {{"prompt", "One day"},
                                                  {"seed", -1},
                                                  {"temperature", 1},
                                                  {"top_k", 0},
                                                  {"top_p", 1},
                                                  {"min_p", 0},
                                                  {"max_tokens", 30}})["choices"][0]["text"]);
  }
  EXPECT_GT(texts.size(), 1U);
}

TEST(Completions, ManyBiasesAreCounted) {
  Json biases = Json::object();
  for (int i = 0; i < 2000; ++i) biases[std::to_string(i)] = 1;
  const Json error = starter_server().post("/v1/completions",
                                           {{"prompt", "a"}, {"logit_bias", biases}}, 400)["error"];
  EXPECT_EQ(error["message"], "logit_bias has 2000 token ids; at most 1024 are accepted");
}

TEST(Completions, RefuseWhatCannotBe) {
  struct Case {
    Json fields;
    int status;
    std::string message;
  };
  const std::vector<Case> cases{
      {{{"max_tokens", -1}}, 400, "max_tokens must be a whole number from 0 to 2147483647, not -1"},
      {{{"max_completion_tokens", -1}}, 400, "max_completion_tokens must be a whole number"},
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
      {{{"logit_bias", {{"2531", 1}}}}, 400, "not a token id from 0 to 2530"},
      {{{"logit_bias", {{"x", 1}}}}, 400, "logit_bias"},
      {{{"logit_bias", {{"1", 101}}}}, 400, "-100 to 100"},
      {{{"logit_bias", {1}}}, 400, "logit_bias"},
      {{{"presence_penalty", 3}}, 400, "presence_penalty"},
      {{{"prompt", 5}}, 400, "prompt must be a string"},
      {{{"prompt", {{"a", 1}}}}, 400, "prompt must be a string"},
      {{{"prompt", {1, "a"}}}, 400, "not a token id"},
      {{{"prompt", {2531}}}, 400, "not a token id"},
      {{{"prompt", {-1}}}, 400, "not a token id"},
      {{{"prompt", {4294967301}}}, 400, "not a token id"},
      {{{"prompt", std::vector<std::int32_t>(257, 5)}}, 400, "257 tokens"},
      {{{"prompt", std::vector<std::string>(257, "a")}}, 400, "256 texts"},
      {{{"prompt", std::vector<std::string>(256, "a")}, {"n", 3}}, 400, "768 texts"},
      {{{"suffix", "x"}}, 400, "suffix is not supported by this server"},
      {{{"model", 4}}, 400, "model must be a string"},
      {{{"stream_options", 1}}, 400, "stream_options"},
      {{{"stream_options", {{"include_usage", 1}}}}, 400, "include_usage of stream_options"},
      {{{"response_format", {{"type", "json_object"}}}}, 400, "response_format is not supported"},
  };
  for (const Case& refused : cases) {
    Json body = refused.fields;
    if (!body.contains("prompt")) body["prompt"] = starter_prompt;
    const Json reply = complete(body, refused.status);
    EXPECT_EQ(reply["error"]["type"], "invalid_request_error");
    EXPECT_TRUE(reply["error"]["code"].is_string()) << reply;
    EXPECT_TRUE(reply["error"]["param"].is_string()) << reply;
    EXPECT_NE(reply["error"]["message"].get<std::string>().find(refused.message), std::string::npos)
        << reply.dump();
  }
}

}  // namespace
}  // namespace heed::server
