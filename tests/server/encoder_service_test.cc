// A server of an encoder: vectors of texts beside its own hidden states, and what it does not
// answer.
#include "server/encoder_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "formats/gguf_save.h"
#include "formats/model_files.h"
#include "generate/random_transformer.h"
#include "server/model_service.h"
#include "server/openapi.h"
#include "server/openapi_schema.h"
#include "support/small_encoder.h"
#include "support/small_model.h"

namespace heed::server {
namespace {

using ::testing::HasSubstr;

// Without sockets: requests go to the router.
class EncoderServer {
 public:
  explicit EncoderServer(const std::filesystem::path& model, ServeOptions options = {})
      : options_(std::move(options)), service_(load_model(model.string()), options_) {}

  Reply send(const std::string& method, const std::string& target, const std::string& body = "") {
    Request request = parse_request(method, target);
    request.body = body;
    return service_.router().handle(std::move(request));
  }
  Json post(const std::string& target, const Json& body, int status = 200) {
    const Reply reply = send("POST", target, body.dump());
    EXPECT_EQ(reply.status, status) << reply.body;
    return Json::parse(reply.body);
  }
  std::vector<std::vector<float>> vectors(const Json& input, const std::string& pooling = "") {
    Json body{{"input", input}};
    if (!pooling.empty()) body["pooling"] = pooling;
    std::vector<std::vector<float>> all;
    const Json reply = post("/v1/embeddings", body);
    for (const Json& one : reply["data"]) {
      EXPECT_EQ(one["index"].get<std::size_t>(), all.size());
      all.push_back(one["embedding"].get<std::vector<float>>());
    }
    return all;
  }
  const Router& router() const { return service_.router(); }

 private:
  ServeOptions options_;
  ModelService service_;
};

class EncoderService : public ::testing::Test {
 protected:
  EncoderService() {
    testing_directory_ = scratch_.path() / "small";
    std::filesystem::create_directory(testing_directory_);
    heed::testing::write_small_encoder(testing_directory_);
  }
  const std::filesystem::path& directory() const { return testing_directory_; }

  heed::testing::ScratchDirectory scratch_;

 private:
  std::filesystem::path testing_directory_;
};

// Rows [begin, end) of the hidden states of one text alone; their sum, with length 1.
std::vector<double> pooled(const std::filesystem::path& directory,
                           const std::vector<std::int32_t>& tokens, std::int64_t begin,
                           std::int64_t end) {
  const Transformer model = load_transformer(StacksWanted::one, directory);
  const Tensor<float> states = heed::testing::last_states(model, tokens);
  std::vector<double> sum(static_cast<std::size_t>(states.shape()[1]));
  double squares = 0;
  for (std::size_t c = 0; c < sum.size(); ++c) {
    for (std::int64_t t = begin; t < end; ++t)
      sum[c] += states.view()(t, static_cast<std::int64_t>(c));
    squares += sum[c] * sum[c];
  }
  for (double& value : sum) value /= std::sqrt(squares);
  return sum;
}

// The mean is summed in double, and its elements, of a vector of length 1, are rounded to f32; the
// states are those of the same pass.
constexpr double rounding = 1e-7;

void expect_near(const std::vector<float>& vector, const std::vector<double>& expected) {
  ASSERT_EQ(vector.size(), expected.size());
  for (std::size_t c = 0; c < expected.size(); ++c) {
    EXPECT_NEAR(vector[c], expected[c], rounding) << c;
  }
}

double distance(const std::vector<float>& left, const std::vector<float>& right) {
  double squares = 0;
  for (std::size_t c = 0; c < left.size(); ++c) squares += std::pow(left[c] - right[c], 2);
  return std::sqrt(squares);
}

const std::vector<std::int32_t> the_cats_sat = {2, 5, 6, 8, 7, 3};  // with [CLS] and [SEP]

TEST_F(EncoderService, VectorsAreThoseOfTheHiddenStates) {
  EncoderServer server(directory());
  const auto mean = server.vectors("the cats sat").front();
  expect_near(mean, pooled(directory(), the_cats_sat, 0, 6));
  EXPECT_EQ(server.vectors("the cats sat", "mean").front(), mean);
  EXPECT_EQ(server.vectors(the_cats_sat).front(), mean) << "ids are taken as they are";
  const auto first = server.vectors("the cats sat", "cls").front();
  expect_near(first, pooled(directory(), the_cats_sat, 0, 1));
  const auto last = server.vectors("the cats sat", "last").front();
  expect_near(last, pooled(directory(), the_cats_sat, 5, 6));
  EXPECT_GT(distance(mean, first), 0.1);
  EXPECT_GT(distance(mean, last), 0.1);
  EXPECT_GT(distance(first, last), 0.1);
  // The tokens after a text's first change its state: nothing is masked.
  EXPECT_GT(distance(first, server.vectors("the cat", "cls").front()), 0.01);
  expect_near(server.vectors("").front(), pooled(directory(), {2, 3}, 0, 2));
}

// Of unlike lengths.
TEST_F(EncoderService, TextsOfABatchAreThoseOfEachAlone) {
  EncoderServer server(directory());
  Json texts = Json::array();
  for (int i = 0; i < 60; ++i) {
    std::string text = "the";
    for (int word = 0; word < i * 7 % 38; ++word) text += word % 3 == i % 3 ? " cats" : " sat";
    if (i % 9 == 0) text = "sat";
    texts.push_back(text.substr(0, text.rfind(' ', 70)));
  }
  for (const char* const pooling : {"mean", "cls", "last"}) {
    const auto together = server.vectors(texts, pooling);
    ASSERT_EQ(together.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(server.vectors(texts[i], pooling).front(), together[i]) << pooling << " " << i;
    }
  }
}

TEST_F(EncoderService, CountsTokensAndEncodesBase64) {
  EncoderServer server(directory());
  const Json body{{"input", {"the cats sat", "cat"}}, {"encoding_format", "base64"}};
  const Json reply = server.post("/v1/embeddings", body);
  EXPECT_EQ(reply["model"].get<std::string>(), "small");
  EXPECT_EQ(reply["usage"]["prompt_tokens"].get<int>(), 6 + 3);
  EXPECT_EQ(reply["usage"]["total_tokens"].get<int>(), 6 + 3);
  const auto vectors = server.vectors(body["input"]);
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    std::string bytes;
    std::uint32_t group = 0;
    int bits = 0;
    for (const char digit : reply["data"][i]["embedding"].get<std::string>()) {
      if (digit == '=') break;
      group = group << 6 | static_cast<std::uint32_t>(digits.find(digit));
      bits += 6;
      if (bits < 8) continue;
      bits -= 8;
      bytes.push_back(static_cast<char>(group >> bits));
    }
    std::vector<float> decoded(bytes.size() / sizeof(float));
    std::memcpy(decoded.data(), bytes.data(), decoded.size() * sizeof(float));
    EXPECT_EQ(decoded, vectors[i]);
  }
}

// As sentence-transformers' file says, and a GGUF file that was made of the directory.
TEST_F(EncoderService, PoolsAsItsFilesSay) {
  const auto default_of = [](const std::filesystem::path& model) {
    return EncoderServer(model).vectors("the cats sat").front();
  };
  const auto mean = default_of(directory());
  const auto first = EncoderServer(directory()).vectors("the cats sat", "cls").front();
  const auto last = EncoderServer(directory()).vectors("the cats sat", "last").front();
  const auto gguf = [&] {
    const std::filesystem::path file = scratch_.path() / "small.gguf";
    save_gguf(
        load_transformer(StacksWanted::one, directory()), file, read_source_files(directory()),
        {.name = "small", .tokenizer = require_tokenizer(directory()).get()}, GgufWeights::f32);
    return file;
  };
  EXPECT_EQ(default_of(gguf()), mean);
  const auto says = [&](const Json& modes) {
    std::filesystem::create_directories(directory() / "1_Pooling");
    write_text_file(directory() / "1_Pooling/config.json", modes.dump());
  };
  says({{"word_embedding_dimension", 32}, {"pooling_mode_cls_token", true}});
  EXPECT_EQ(default_of(directory()), first);
  EXPECT_EQ(default_of(gguf()), first);
  says({{"pooling_mode_cls_token", false}, {"pooling_mode_lasttoken", true}});
  EXPECT_EQ(default_of(directory()), last);
  EXPECT_EQ(default_of(gguf()), last);
  says({{"pooling_mode_mean_tokens", true}});
  EXPECT_EQ(default_of(directory()), mean);
  EXPECT_EQ(EncoderServer(gguf()).vectors("the cats sat", "cls").front(), first);
}

TEST_F(EncoderService, SaysWhyItDoesNotContinueTexts) {
  EncoderServer server(directory());
  for (const char* const path : {"/v1/completions", "/v1/chat/completions"}) {
    for (const bool streams : {false, true}) {
      const Json body{{"prompt", "a"}, {"stream", streams}, {"messages", Json::array()}};
      const Json error = server.post(path, body, 400)["error"];
      EXPECT_THAT(error["message"].get<std::string>(),
                  HasSubstr("'small' is an encoder: it has no logits of a next token, which " +
                            std::string(path) + " needs"));
      EXPECT_EQ(error["type"].get<std::string>(), "invalid_request_error");
      EXPECT_EQ(error["param"].get<std::string>(), "model");
      EXPECT_EQ(error["code"].get<std::string>(), "unsupported_model");
    }
  }
  EXPECT_EQ(server.send("GET", "/props").status, 400);
  EXPECT_EQ(server.send("GET", "/health").status, 200);
  EXPECT_EQ(server.send("GET", "/v1/models/small").status, 200);
  EXPECT_EQ(server.send("GET", "/v1/models/other").status, 404);
  EXPECT_EQ(server.send("POST", "/v1/nothing").status, 404);
}

TEST_F(EncoderService, RefusesByField) {
  ServeOptions options;
  options.scheduler.context = 12;
  EncoderServer server(directory(), options);
  const auto refused = [&](const Json& body, const std::string& param, const std::string& code,
                           const std::string& message) {
    const Json error = server.post("/v1/embeddings", body, 400)["error"];
    EXPECT_EQ(error["param"].get<std::string>(), param) << error;
    EXPECT_EQ(error["code"].get<std::string>(), code) << error;
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(message));
  };
  std::string eleven_words = "sat";
  for (int i = 0; i < 10; ++i) eleven_words += " sat";
  refused({{"input", eleven_words}}, "input", "context_length_exceeded",
          "input has 13 tokens, more than the context of 12");
  refused({{"input", "sat"}, {"pooling", "max"}}, "pooling", "invalid_value",
          "\"cls\" or \"last\"");
  refused({{"input", "sat"}, {"dimensions", 8}}, "dimensions", "unsupported_parameter", "32");
  refused({{"input", Json::array({Json::array({5, 67})})}}, "input", "invalid_value", "67");
  refused(Json::object(), "input", "missing_required_parameter", "no \"input\"");
  options.scheduler.context = 41;
  EXPECT_THROW(EncoderServer(directory(), options), Error);
  options.scheduler.context = 0;
  options.chat_template = "chatml";
  EXPECT_THROW(EncoderServer(directory(), options), Error);
}

TEST_F(EncoderService, TokenizesAsItReads) {
  EncoderServer server(directory());
  const auto tokens = [&](const Json& more) {
    Json body{{"content", "the cats sat"}};
    body.update(more);
    return server.post("/tokenize", body)["tokens"].get<std::vector<std::int32_t>>();
  };
  EXPECT_EQ(tokens({{"add_special", true}}), the_cats_sat);
  EXPECT_EQ(tokens(Json::object()), (std::vector<std::int32_t>{5, 6, 8, 7}));
}

TEST_F(EncoderService, AnswersAreAsTheDocumentSays) {
  EncoderServer server(directory());
  const Json document = Json::parse(openapi_document());
  const testing::SchemaChecker checker(document);
  const auto check = [&](const std::string& method, const std::string& path, const Reply& reply) {
    const Json& answer = document["paths"][path][method]["responses"][std::to_string(reply.status)];
    const Json& schema = checker.resolved(answer)["content"]["application/json"]["schema"];
    EXPECT_THAT(checker.faults(Json::parse(reply.body), schema), ::testing::IsEmpty()) << path;
  };
  check("post", "/v1/embeddings", server.send("POST", "/v1/embeddings", R"({"input": "the cat"})"));
  check("get", "/v1/models", server.send("GET", "/v1/models"));
  check("get", "/props", server.send("GET", "/props"));
  for (const char* const path : {"/v1/completions", "/v1/chat/completions", "/v1/embeddings"}) {
    check("post", path, server.send("POST", path, "{}"));
  }
  for (const Router::Route& route : server.router().routes()) {
    EXPECT_TRUE(document["paths"].contains(route.pattern)) << route.pattern;
  }
}

}  // namespace
}  // namespace heed::server
