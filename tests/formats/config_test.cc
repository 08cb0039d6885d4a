#include "formats/config_file.h"
#include "model/architecture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::TemporaryDirectory;

// The config.json that the GPT-2 of the hub has, in so far as it says what is computed.
Json hub_document() {
  return Json::parse(R"({
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256,
    "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
    "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
    "resid_pdrop": 0.1, "summary_activation": null, "summary_type": "cls_index",
    "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}},
    "vocab_size": 50257
  })");
}

Json with(const char* key, const Json& value) {
  Json document = hub_document();
  document[key] = value;
  return document;
}

StackSpecification read(const Json& document) {
  return stack_config_from_json(document, "config.json");
}

TEST(Config, ReadsTheHubsGpt2) {
  StackSpecification expected;
  expected.embedding_dropout = expected.attention_dropout = expected.residual_dropout = 0.1F;
  expected.end_of_text = 50256;
  EXPECT_EQ(read(hub_document()), expected);
}

TEST(Config, IsReadAsItWasWritten) {
  StackSpecification plain = make_gpt_config(3, 4, 32, 24, 61);
  StackSpecification unusual = make_gpt_config(2, 3, 24, 16, 37);
  unusual.block.attention.head_size = 10;
  unusual.block.feed_forward.width = 56;
  unusual.block.feed_forward.activation = Activation::gelu_erf;
  unusual.block.norm.epsilon = 1e-6F;
  unusual.initial_deviation = 0.013F;
  set_biases(unusual, Biases::none);
  unusual.tied_unembedding = false;
  unusual.embedding_dropout = 0.1F;
  unusual.attention_dropout = 0.2F;
  unusual.residual_dropout = 0.3F;
  unusual.end_of_text = 36;
  StackSpecification rectified = plain;
  rectified.block.feed_forward.activation = Activation::relu;
  rectified.unembedding_bias = true;
  StackSpecification banded = plain;  // GPT-3's alternation
  banded.block.attention.mask = {.kind = MaskKind::banded, .windows = {0, 5, 0}};
  for (const StackSpecification& config : {plain, unusual, rectified, banded}) {
    EXPECT_EQ(read(Json::parse(stack_config_to_json(config).dump())), config);
  }
}

// The nested object once was a temporary that had gone when its fields were read.
TEST(Config, ReadsHeedsOwnFields) {
  Json document = hub_document();
  document["heed"] = {{"bias", false}, {"head_size", 80}};
  EXPECT_FALSE(has_biases(read(document)));
  EXPECT_EQ(read(document).head_size(), 80);
  document["heed"] = nullptr;
  EXPECT_TRUE(has_biases(read(document)));
  document["heed"] = {{"bias", "no"}};
  expect_error(
      ErrorCode::corrupt_data, [&] { read(document); }, "config.json: heed", "'bias'");
  document["heed"] = {{"attention_windows", 5}};
  expect_error(
      ErrorCode::corrupt_data, [&] { read(document); },
      "must be a list of a window for each layer");
  document["heed"] = {{"attention_windows", {0, 5}}};
  expect_error(
      ErrorCode::corrupt_data, [&] { read(document); }, "12 layers has 2 windows");
  document["heed"] = 3;
  expect_error(
      ErrorCode::corrupt_data, [&] { read(document); }, "config.json: heed", "object");
}

TEST(Config, WritesWhatOtherReadersLookFor) {
  const OrderedJson json = stack_config_to_json(make_gpt_config(3, 4, 32, 24, 61));
  EXPECT_EQ(json["n_ctx"], 24);
  EXPECT_EQ(json["architectures"][0], "GPT2LMHeadModel");
  EXPECT_EQ(json["layer_norm_epsilon"].dump(), "1e-05");
  EXPECT_FALSE(json.contains("heed"));
}

TEST(Config, FillsInWhatGpt2Assumes) {
  const StackSpecification config = read(Json::parse(
      R"({"vocab_size": 10, "n_ctx": 8, "n_embd": 12, "n_layer": 1, "n_head": 3,
          "n_inner": null, "eos_token_id": 50256})"));
  EXPECT_EQ(config.context, 8);
  EXPECT_EQ(config.head_size(), 4);
  EXPECT_EQ(config.feed_forward(), 48);
  EXPECT_EQ(config.block.feed_forward.activation, Activation::gelu_tanh);
  EXPECT_TRUE(config.tied_unembedding);
  EXPECT_EQ(config.end_of_text, -1);
  EXPECT_EQ(read(with("activation_function", "gelu_pytorch_tanh")).block.feed_forward.activation,
            Activation::gelu_tanh);
}

TEST(Config, ReadsEveryNameOfAnActivation) {
  const auto activation = [](const char* name) {
    return read(with("activation_function", name)).block.feed_forward.activation;
  };
  for (const char* name :
       {"gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate"}) {
    EXPECT_EQ(activation(name), Activation::gelu_tanh) << name;
  }
  for (const char* name : {"gelu", "gelu_python"}) {
    EXPECT_EQ(activation(name), Activation::gelu_erf) << name;
  }
  EXPECT_EQ(activation("swish"), Activation::silu);
  EXPECT_EQ(activation("relu2"), Activation::relu2);
  for (const kernels::ActivationDescription& row : kernels::activations) {
    EXPECT_STREQ(activation_name(activation(activation_name(row.activation))),
                 activation_name(row.activation));
  }
}

TEST(Config, ReadsGpt2sNewNames) {
  Json document = hub_document();
  const StackSpecification expected = read(document);
  document.erase("n_ctx");
  for (const auto& [old, current] :
       {std::pair("n_embd", "hidden_size"), std::pair("n_layer", "num_hidden_layers"),
        std::pair("n_head", "num_attention_heads"),
        std::pair("n_positions", "max_position_embeddings")}) {
    document[current] = document[old];
    EXPECT_EQ(read(document), expected) << "beside " << old;
    document.erase(old);
    EXPECT_EQ(read(document), expected) << current;
    document[old] = 24;
    expect_error(
        ErrorCode::corrupt_data, [&] { read(document); }, old, current, "24", "two names");
    document.erase(old);
  }
}

TEST(Config, ReadsWholeNumbersWithAPoint) {
  Json document = hub_document();
  for (const char* key : {"vocab_size", "n_positions", "n_embd", "eos_token_id"}) {
    document[key] = document[key].get<double>();
  }
  EXPECT_EQ(read(document), read(hub_document()));
  document["n_embd"] = 768.5;
  expect_error(
      ErrorCode::corrupt_data, [&] { read(document); }, "'n_embd'", "768.5");
  document["n_embd"] = 1e300;
  expect_error(
      ErrorCode::corrupt_data, [&] { read(document); }, "'n_embd'");
}

// Python writes these numbers, which are no JSON.
TEST(Config, MayHoldNumbersThatAreNoJson) {
  const std::string text =
      R"({"vocab_size": 10, "n_ctx": 8, "n_embd": 12, "n_layer": 1, "n_head": 3,
          "limit": Infinity, "least": -Infinity, "other": [NaN, "a \" NaN"], "name": "Infinity"})";
  const Json document = parse_config(text, "config.json");
  EXPECT_EQ(read(document).context, 8);
  const std::string written = config_text(parse_ordered_config(text, "config.json"));
  for (const char* part : {"\"limit\": Infinity,", "\"least\": -Infinity,", "    NaN,",
                           R"("a \" NaN")", "\"name\": \"Infinity\""}) {
    EXPECT_THAT(written, ::testing::HasSubstr(part));
  }
  EXPECT_EQ(parse_config(written, "config.json"), document);
  Json used = document;
  used["layer_norm_epsilon"] = document["limit"];
  expect_error(
      ErrorCode::corrupt_data, [&] { read(used); }, "'layer_norm_epsilon'", "Infinity");
  for (const char* wrong : {"{\"a\": NaNa}", "{\"a\": Infinit}", "{NaN: 1", "[-NaN]"}) {
    expect_error(
        ErrorCode::corrupt_data, [&] { parse_config(wrong, "config.json"); }, "not valid JSON");
  }
}

// Every family reads one token and a list of them.
TEST(Config, ReadsAllTokensThatEndAText) {
  for (const char* family : {"gpt2", "llama", "neox", "starcoder2", "qwen3"}) {
    const auto file = std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/families" / family /
                      config_file_name;
    Json document = read_config_document(file);
    const auto first = [&](const Json& ends) {
      document["eos_token_id"] = ends;
      return stack_config_from_json(document, "config.json").end_of_text;
    };
    EXPECT_EQ(first(7), 7) << family;
    EXPECT_EQ(first({7, 3}), 7) << family;
    EXPECT_EQ(first({1 << 20, 3}), 3) << family << ": the first is not in the vocabulary";
    EXPECT_EQ(first(Json::array()), -1) << family;
    EXPECT_EQ(first(nullptr), -1) << family;
    for (const Json& wrong :
         {Json("a"), Json({3, "a"}), Json({3, -2}), Json(1.5), Json(std::vector<int>(5000, 3))}) {
      expect_error(
          ErrorCode::corrupt_data, [&] { first(wrong); }, "eos_token_id");
    }
  }
}

TEST(Config, NamesAMissingKey) {
  for (const char* key : {"vocab_size", "n_embd", "n_layer", "n_head"}) {
    Json document = hub_document();
    document.erase(key);
    expect_error(
        ErrorCode::corrupt_data, [&] { read(document); },
        fmt::format("config.json: '{}' is missing", key));
  }
  Json document = hub_document();
  document.erase("n_positions");
  document.erase("n_ctx");
  expect_error(
      ErrorCode::corrupt_data, [&] { read(document); }, "'n_positions' is missing");
}

TEST(Config, NamesAValueOfTheWrongType) {
  const auto refuse = [](const char* key, const Json& value) {
    expect_error(
        ErrorCode::corrupt_data, [&] { read(with(key, value)); }, "config.json",
        std::string("'") + key + "'", value.is_array() ? "an array" : value.dump());
  };
  refuse("n_layer", "twelve");
  refuse("n_layer", 12.5);
  refuse("n_embd", Json::array({768}));
  refuse("vocab_size", std::uint64_t{1} << 63);
  refuse("layer_norm_epsilon", "1e-5");
  refuse("tie_word_embeddings", 1);
  refuse("activation_function", 3);
  expect_error(
      ErrorCode::corrupt_data, [] { read(Json::array()); }, "expected a JSON object");
}

TEST(Config, NamesAnImpossibleValue) {
  const auto refuse = [](const char* key, const Json& value, const std::string& part) {
    expect_error(
        ErrorCode::corrupt_data, [&] { read(with(key, value)); }, "config.json", part);
  };
  refuse("n_layer", 0, "layers must be between 1 and 4096, not 0");
  refuse("n_layer", 5000, "not 5000");
  refuse("n_head", 0, "heads must be between 1 and 65536, not 0");
  refuse("n_head", -12, "not -12");
  refuse("n_embd", std::int64_t{1} << 40, "channels");
  refuse("vocab_size", -1, "vocabulary size");
  refuse("n_positions", 0, "context");
  refuse("n_inner", -4, "feed-forward size");
  refuse("layer_norm_epsilon", 0.0, "layer_norm_epsilon must be positive");
  refuse("attn_pdrop", 1.0, "attn_pdrop");
  refuse("eos_token_id", -2, "eos_token_id is -2");
}

TEST(Config, NamesAContradiction) {
  expect_error(
      ErrorCode::corrupt_data, [] { read(with("n_head", 7)); },
      "n_embd 768 is not a multiple of n_head 7");
}

TEST(Config, RefusesVariantsThatItWouldComputeDifferently) {
  const auto refuse = [](const char* key, const Json& value) {
    expect_error(
        ErrorCode::unsupported, [&] { read(with(key, value)); }, key);
  };
  refuse("model_type", "mamba");
  refuse("scale_attn_by_inverse_layer_idx", true);
  refuse("add_cross_attention", true);
  refuse("is_encoder_decoder", true);
  refuse("scale_attn_weights", false);
  refuse("activation_function", "mish");
}

TEST(Config, NamesTheFileThatIsNoJson) {
  const TemporaryDirectory directory;
  write_text_file(directory / "config.json", "{\"n_layer\": 12,}");
  expect_error(
      ErrorCode::corrupt_data, [&] { read_stack_config(directory / "config.json"); },
      (directory / "config.json").string());
  expect_error(
      ErrorCode::not_found, [&] { read_stack_config(directory / "other.json"); }, "other.json");
}

}  // namespace
}  // namespace heed
