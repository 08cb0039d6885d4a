// The requests of lm-evaluation-harness's `local-completions`, as lm_eval_requests.json holds them,
// and its parsing of the answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/files.h"
#include "generate/generator.h"
#include "generate/token_scores.h"
#include "server/test_server.h"

namespace heed::server {
namespace {

using testing::starter_model;
using testing::starter_server;

const std::vector<Json>& calls(const std::string& kind) {
  static const std::map<std::string, std::vector<Json>> by_kind = [] {
    const auto path = std::filesystem::path(HEED_SOURCE_DIR) / "tests/server/lm_eval_requests.json";
    std::map<std::string, std::vector<Json>> found;
    const Json log = parse_json(read_text_file(path), "the request log");
    for (const Json& call : log.at("calls")) {
      found[call["kind"]].push_back(call);
    }
    return found;
  }();
  return by_kind.at(kind);
}

// Sends a call with the headers of Python's requests.
Json answer(const Json& call) {
  httplib::Headers headers;
  for (const auto& [name, value] : call["headers"].items()) headers.emplace(name, value);
  const std::string body = call["body"].dump();
  const auto reply =
      starter_server().client().Post(call["path"], headers, body, "application/json");
  EXPECT_TRUE(reply);
  if (!reply) return {};
  EXPECT_EQ(reply->status, 200) << reply->body;
  EXPECT_FALSE(reply->has_header("X-Heed-Warning")) << reply->get_header_value("X-Heed-Warning");
  return parse_json(reply->body, "the answer");
}

std::vector<Json> sorted_choices(const Json& reply) {
  std::vector<Json> choices = reply.at("choices");
  std::stable_sort(choices.begin(), choices.end(), [](const Json& a, const Json& b) {
    return a.at("index").get<int>() < b.at("index").get<int>();
  });
  return choices;
}

struct Likelihood {
  double log_probability = 0;
  bool is_greedy = true;
};

// What LocalCompletionsAPI.parse_logprobs makes of a choice: token_logprobs[ctxlen:-1] are summed,
// and each must be the largest of its top_logprobs for the continuation to be the greedy one.
Likelihood parse_likelihood(const Json& choice, std::size_t context_length) {
  const Json& logprobs = choice.at("logprobs");
  const Json& scores = logprobs.at("token_logprobs");
  Likelihood parsed;
  for (std::size_t i = context_length; i + 1 < scores.size(); ++i) {
    const double score = scores.at(i).get<double>();
    const Json& top = logprobs.at("top_logprobs").at(i);
    double largest = -INFINITY;
    for (const auto& [token, value] : top.items()) largest = std::max(largest, value.get<double>());
    parsed.log_probability += score;
    parsed.is_greedy = parsed.is_greedy && score == largest;
  }
  return parsed;
}

std::vector<std::int32_t> tokens_of(const Json& prompt) {
  if (prompt.is_string()) return starter_model().encode(prompt.get<std::string>());
  return prompt.get<std::vector<std::int32_t>>();
}

// The same from the model itself.
Likelihood likelihood(const std::vector<std::int32_t>& tokens, std::size_t context_length) {
  const ScoredText scored = score_text(starter_model().transformer, tokens, 1);
  Likelihood expected;
  for (std::size_t i = context_length; i < tokens.size(); ++i) {
    const TokenScore& score = scored.scores[i - 1];
    expected.log_probability += score.token.value;
    expected.is_greedy = expected.is_greedy && score.likeliest[0].token == score.token.token;
  }
  return expected;
}

// The prompts of a call: lm-eval sends a batch as a list, and a batch of one string as a string.
std::vector<Json> prompts_of(const Json& call) {
  const Json prompt = call["body"]["prompt"];
  if (prompt.is_string()) return {prompt};
  return prompt.get<std::vector<Json>>();
}

TEST(LmEval, FindsNoRemoteTokenizer) {
  for (const Json& call : calls("probe")) {
    const auto reply = starter_server().client().Get(call["path"].get<std::string>());
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 404);  // so that it takes the tokenizer of its arguments
  }
}

TEST(LmEval, LikelihoodsAreTheModels) {
  std::size_t checked = 0;
  std::size_t greedy = 0;
  for (const char* kind : {"loglikelihood", "loglikelihood_rolling"}) {
    for (const Json& call : calls(kind)) {
      const std::vector<Json> choices = sorted_choices(answer(call));
      const std::vector<Json> prompts = prompts_of(call);
      const Json context_lengths = call["context_lengths"];
      ASSERT_EQ(choices.size(), prompts.size());
      ASSERT_EQ(context_lengths.size(), prompts.size());
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        const std::vector<std::int32_t> tokens = tokens_of(prompts[i]);
        const std::size_t context_length = context_lengths[i];
        ASSERT_LT(context_length, tokens.size());
        // One score for each token of the prompt and one for the token that it asks for.
        ASSERT_EQ(choices[i]["logprobs"]["token_logprobs"].size(), tokens.size() + 1);
        const Likelihood parsed = parse_likelihood(choices[i], context_length);
        const Likelihood expected = likelihood(tokens, context_length);
        EXPECT_NEAR(parsed.log_probability, expected.log_probability, 1e-5);
        EXPECT_EQ(parsed.is_greedy, expected.is_greedy);
        ++checked;
        greedy += parsed.is_greedy ? 1 : 0;
      }
    }
  }
  EXPECT_GT(greedy, 0U);
  EXPECT_LT(greedy, checked);
}

// lm-eval ranks the continuations of one context; the log holds two, the likelier first.
TEST(LmEval, RanksContinuations) {
  const std::vector<Json> choices = sorted_choices(answer(calls("loglikelihood").front()));
  const Json context_lengths = calls("loglikelihood").front()["context_lengths"];
  ASSERT_GE(choices.size(), 2U);
  EXPECT_GT(parse_likelihood(choices[0], context_lengths[0]).log_probability,
            parse_likelihood(choices[1], context_lengths[1]).log_probability);
}

TEST(LmEval, GenerationsAreGreedyUntilAStop) {
  std::size_t stopped = 0;
  for (const Json& call : calls("generate_until")) {
    const std::vector<Json> choices = sorted_choices(answer(call));
    const std::vector<Json> prompts = prompts_of(call);
    ASSERT_EQ(choices.size(), prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      // parse_generations puts each text at its index.
      EXPECT_EQ(choices[i]["index"], i);
      GenerateOptions options{.max_new_tokens = call["body"]["max_tokens"]};
      options.sampling.temperature = 0;
      options.stop_strings = call["body"]["stop"].get<std::vector<std::string>>();
      const auto expected = generate(starter_model().transformer, starter_model().tokenizer.get(),
                                     tokens_of(prompts[i]), options);
      EXPECT_EQ(choices[i]["text"], expected.text);
      stopped += choices[i]["finish_reason"] == "stop" ? 1 : 0;
    }
  }
  EXPECT_GT(stopped, 0U);
}

}  // namespace
}  // namespace heed::server
