// GGUF files that heed writes: read again they are the model.
#include "formats/gguf_save.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/expect_error.h"
#include "base/files.h"
#include "checkpoint/gguf.h"
#include "formats/model_files.h"
#include "generate/random_transformer.h"
#include "support/small_model.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

fs::path golden(const std::string& name) {
  return fs::path(HEED_SOURCE_DIR) / "tests/golden" / name;
}

Transformer saved_and_read(const Transformer& model, const SourceFiles& source,
                           const fs::path& file, GgufWeights weights = GgufWeights::f32) {
  save_gguf(model, file, source, {.name = "small"}, weights);
  return load_transformer(
      model.architecture().is_encoder_decoder() ? StacksWanted::two : StacksWanted::one, file);
}

TEST(GgufSave, RoundsNothingInF32) {
  const testing::ScratchDirectory scratch;
  for (const char* name :
       {"families/gpt2", "families/llama", "families/llama_scaled", "families/llama_yarn",
        "families/mistral", "families/qwen2", "families/qwen3", "families/starcoder2",
        "families/neox", "families/neox_sequential", "families/olmo2", "families/phi3",
        "families/falcon", "families/falcon_new", "pairs/t5_gated"}) {
    SCOPED_TRACE(name);
    const bool translates = is_encoder_decoder_directory(golden(name));
    const Transformer model =
        load_transformer(translates ? StacksWanted::two : StacksWanted::one, golden(name));
    const Transformer read =
        saved_and_read(model, read_source_files(golden(name)), scratch.path() / "model.gguf");
    for (const Parameter& parameter : parameters_of(model.architecture())) {
      EXPECT_TRUE(std::ranges::equal(model.parameters().tensor(parameter.id).span(),
                                     read.parameters().tensor(parameter.id).span()))
          << parameter_name(parameter.id);
    }
  }
}

// GPT-2 without biases is written with zeros, and read without them.
TEST(GgufSave, KeepsThatAModelHasNoBiases) {
  const testing::ScratchDirectory scratch;
  StackSpecification stack = make_gpt_config(1, 2, 8, 16, 20);
  set_biases(stack, Biases::none);
  Transformer model({.stacks = {stack}});
  model.parameters().initialize(3);
  const Transformer read = saved_and_read(model, {}, scratch.path() / "model.gguf");
  EXPECT_FALSE(has_biases(read.specification()));
}

// Windows in the layers that llama.cpp gives them, queries scaled as it scales them.
TEST(GgufSave, KeepsGemma) {
  const testing::ScratchDirectory scratch;
  for (const char* name : {"families/gemma2", "families/gemma3"}) {
    SCOPED_TRACE(name);
    StackSpecification stack = load_transformer(StacksWanted::one, golden(name)).specification();
    stack.block.attention.scale = 0;
    if (stack.block.attention.query_key_norm) stack.block.attention.mask.windows = {5, 5, 5};
    Transformer model({.stacks = {stack}});
    model.parameters().initialize(3);
    const Transformer read = saved_and_read(model, {}, scratch.path() / "model.gguf");
    stack.embedding_scale = std::sqrt(24.0F);  // bf16 rounds it
    stack.initial_deviation = read.specification().initial_deviation;
    stack.end_of_text = read.specification().end_of_text;
    EXPECT_EQ(read.specification(), stack);
    for (const Parameter& parameter : parameters_of(model.architecture())) {
      EXPECT_TRUE(std::ranges::equal(model.parameters().tensor(parameter.id).span(),
                                     read.parameters().tensor(parameter.id).span()))
          << parameter_name(parameter.id);
    }
  }
}

TEST(GgufSave, RefusesWhatTheFormatCannotSay) {
  const testing::ScratchDirectory scratch;
  const fs::path file = scratch.path() / "model.gguf";
  for (const char* name : {"families/llama_biased", "families/qwen2_windows", "families/gemma2",
                           "families/gemma3", "pairs/t5"}) {
    const bool translates = is_encoder_decoder_directory(golden(name));
    const Transformer model =
        load_transformer(translates ? StacksWanted::two : StacksWanted::one, golden(name));
    expect_error(
        ErrorCode::unsupported,
        [&] { saved_and_read(model, read_source_files(golden(name)), file); },
        "cannot say all that this model is");
  }
  const Transformer marian = load_transformer(StacksWanted::two, golden("pairs/marian"));
  expect_error(
      ErrorCode::unsupported,
      [&] { saved_and_read(marian, read_source_files(golden("pairs/marian")), file); },
      "does not write models of type 'marian' as GGUF files: of encoder-decoders, the format has "
      "an "
      "architecture for T5 alone");
  StackSpecification tanh =
      load_transformer(StacksWanted::one, golden("pairs/bert")).specification();
  tanh.block.feed_forward.activation = Activation::gelu_tanh;
  expect_error(
      ErrorCode::unsupported, [&] { saved_and_read(Transformer({.stacks = {tanh}}), {}, file); },
      "a GGUF file of 'bert' cannot say all that this model is");
  EXPECT_FALSE(fs::exists(file));
}

const std::vector<std::int32_t> few_tokens = {2, 17, 36, 11, 9, 3};

// The encoder to the bit, and no head: such a file, written again, is the same file, and a model
// directory that is made of it holds it too.
TEST(GgufBertFiles, HoldTheEncoderAlone) {
  const testing::ScratchDirectory scratch;
  const fs::path directory = golden("pairs/bert"), file = scratch.path() / "bert.gguf";
  const Transformer model = load_transformer(StacksWanted::one, directory);
  const Transformer read = saved_and_read(model, read_source_files(directory), file);
  EXPECT_FALSE(read.specification().has_unembedding);
  EXPECT_FALSE(read.specification().prediction_head);
  const auto expect_same_encoder = [&](const Transformer& other) {
    const std::vector<Parameter> parameters = parameters_of(other.architecture());
    // Of two layers and the embeddings: what the head has are five more.
    EXPECT_EQ(parameters.size() + 5, parameters_of(model.architecture()).size());
    for (const Parameter& parameter : parameters) {
      EXPECT_TRUE(std::ranges::equal(model.parameters().tensor(parameter.id).span(),
                                     other.parameters().tensor(parameter.id).span()))
          << parameter_name(parameter.id);
    }
    EXPECT_TRUE(std::ranges::equal(testing::last_states(other, few_tokens).span(),
                                   testing::last_states(model, few_tokens).span()));
  };
  expect_same_encoder(read);

  const fs::path again = scratch.path() / "again.gguf";
  save_gguf(read, again, read_source_files(file), {.name = "small"}, GgufWeights::f32);
  EXPECT_EQ(read_text_file(again), read_text_file(file));
  save_transformer(read, scratch.path() / "model", read_source_files(file));
  const Json config = read_config_document(scratch.path() / "model/config.json");
  EXPECT_EQ(config["architectures"], Json::array({"BertModel"}));
  expect_same_encoder(load_transformer(StacksWanted::one, scratch.path() / "model"));
}

// What is computed from hidden states alone works; what needs logits says that there are none.
TEST(GgufBertFiles, HaveNoLogits) {
  const testing::ScratchDirectory scratch;
  const fs::path directory = golden("pairs/bert");
  const Transformer read = saved_and_read(load_transformer(StacksWanted::one, directory),
                                          read_source_files(directory), scratch.path() / "b.gguf");
  const Tensor<float> states = testing::last_states(read, few_tokens);
  Tensor<float> logits(Shape{states.shape()[0], read.specification().vocabulary_size});
  const char* const because = "this model has none: it is an encoder without the head";
  expect_error(
      ErrorCode::unsupported, [&] { read.project(states, logits); }, "a prediction", because);
  expect_error(
      ErrorCode::unsupported, [&] { read.project_tokens(states, few_tokens, 0); }, because);
  const View<const std::int32_t> tokens(few_tokens.data(), {1, std::ssize(few_tokens)});
  EvaluationBuffers buffers(read.specification(), 1, std::ssize(few_tokens));
  expect_error(
      ErrorCode::unsupported, [&] { read.loss(tokens, tokens, buffers); }, "a loss", because);
}

TEST(GgufBertFiles, HoldMatricesInBlocks) {
  const testing::ScratchDirectory scratch;
  StackSpecification stack =
      load_transformer(StacksWanted::one, golden("pairs/bert")).specification();
  stack.block.feed_forward.width = 64;
  Transformer model({.stacks = {stack}});
  model.parameters().initialize(3);
  const Transformer read =
      saved_and_read(model, {}, scratch.path() / "bert.gguf", GgufWeights::q8_0);
  EXPECT_TRUE(read.parameters().are_in_blocks());
  const Tensor<float> states = testing::last_states(read, few_tokens);
  const Tensor<float> exact = testing::last_states(model, few_tokens);
  double error = 0, size = 0;
  for (std::int64_t i = 0; i < exact.size(); ++i) {
    error += std::pow(double{states[i]} - exact[i], 2);
    size += std::pow(double{exact[i]}, 2);
  }
  // Rounding of weights and activations to 8 bits: 1/127 of a block's largest number.
  EXPECT_GT(error, 0);
  EXPECT_LT(std::sqrt(error / size), 0.02);
}

TEST(GgufBertFiles, KeepHowStatesArePooled) {
  const testing::ScratchDirectory scratch;
  const Transformer model = load_transformer(StacksWanted::one, golden("pairs/bert"));
  const auto pooling_of = [&](const SourceFiles& source) {
    const fs::path file = scratch.path() / "bert.gguf";
    save_gguf(model, file, source, {.name = "small"}, GgufWeights::f32);
    const GgufFile written = GgufFile::open(file);
    EXPECT_FALSE(written.find_value("bert.attention.causal")->boolean());
    EXPECT_EQ(written.find_value("tokenizer.ggml.token_type_count")->integer(), 2);
    return written.find_value("bert.pooling_type")->integer();
  };
  SourceFiles source = read_source_files(golden("pairs/bert"));
  EXPECT_EQ(pooling_of(source), 0);
  source.config["pooling_type"] = 2;
  EXPECT_EQ(pooling_of(source), 2);
  EXPECT_EQ(pooling_of(read_source_files(scratch.path() / "bert.gguf")), 2);
}

TEST(GgufSave, NamesATensorThatATypeCannotHold) {
  const testing::ScratchDirectory scratch;
  Transformer model = testing::small_gpt(40);
  model.parameters().tensor({Role::token_embedding})(3, 2) = 1e9F;
  expect_error(
      ErrorCode::unsupported,
      [&] { saved_and_read(model, {}, scratch.path() / "x.gguf", GgufWeights::f16); },
      "'token_embd.weight': the number 1000000000 is beyond the largest of F16");
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

// 0.03: a step of Q4_0, an eighth of a block's largest number, is far below what parts these.
TEST(GgufSave, RoundsMatricesAlone) {
  const testing::ScratchDirectory scratch;
  StackSpecification stack = make_gpt_config(2, 2, 64, 32, 50);
  Transformer model({.stacks = {stack}});
  model.parameters().initialize(3);
  for (const GgufWeights weights : {GgufWeights::f16, GgufWeights::bf16, GgufWeights::q8_0,
                                    GgufWeights::q4_0, GgufWeights::q4_k_m}) {
    SCOPED_TRACE(gguf_weights_name(weights));
    EXPECT_EQ(parse_gguf_weights(gguf_weights_name(weights)), weights);
    const Transformer read = saved_and_read(model, {}, scratch.path() / "model.gguf", weights);
    for (const Parameter& parameter : parameters_of(model.architecture())) {
      const auto values = model.parameters().tensor(parameter.id).span();
      const auto rounded = read.parameters().tensor(parameter.id).span();
      const bool is_kept =
          parameter.shape.rank() == 1 || parameter.id.role == Role::position_embedding;
      double error = 0, size = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        error += std::pow(static_cast<double>(values[i]) - rounded[i], 2);
        size += std::pow(static_cast<double>(values[i]), 2);
      }
      if (is_kept) {
        EXPECT_EQ(error, 0) << parameter_name(parameter.id);
      } else {
        EXPECT_GT(error, 0) << parameter_name(parameter.id);
        // Uniform within half of a step of 1/8 of about three deviations: 0.11 of the deviation.
        EXPECT_LT(std::sqrt(error / size), 0.13) << parameter_name(parameter.id);
      }
    }
  }
}

// Of llama.cpp's rule for Q4_K_M, in a model of 16 layers.
TEST(GgufTypes, AreThoseOfLlamaCpp) {
  const Shape wide{512, 512};
  GgufTypes types(GgufWeights::q4_k_m, 16, GgufTypes::Unembedding::own);
  const std::vector<std::int64_t> finer = {0, 1, 4, 7, 10, 13, 14, 15};
  for (std::int64_t layer = 0; layer < 16; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    const BlockType expected =
        std::ranges::count(finer, layer) > 0 ? BlockType::q6_k : BlockType::q4_k;
    EXPECT_EQ(types.of(blk + "attn_q.weight", wide), BlockType::q4_k);
    EXPECT_EQ(types.of(blk + "attn_v.weight", wide), expected) << layer;
    EXPECT_EQ(types.of(blk + "ffn_down.weight", wide), expected) << layer;
    EXPECT_EQ(types.of(blk + "attn_qkv.weight", wide), BlockType::q5_k);
    EXPECT_EQ(types.of(blk + "attn_norm.weight", {512}), BlockType::f32);
  }
  EXPECT_EQ(types.of("output.weight", wide), BlockType::q6_k);
  EXPECT_EQ(types.of("token_embd.weight", wide), BlockType::q4_k);
  EXPECT_EQ(types.of("position_embd.weight", wide), BlockType::f32);
  // Rows that 256 does not divide, and rows that 32 does not.
  EXPECT_EQ(types.of("token_embd.weight", {100, 320}), BlockType::q5_0);
  EXPECT_EQ(types.of("output.weight", {100, 320}), BlockType::q8_0);
  EXPECT_EQ(types.of("blk.0.attn_qkv.weight", {100, 320}), BlockType::q5_1);
  EXPECT_EQ(types.of("blk.0.ffn_up.weight", {100, 24}), BlockType::f16);
  EXPECT_EQ(
      GgufTypes(GgufWeights::q4_0, 16, GgufTypes::Unembedding::tied).of("token_embd.weight", wide),
      BlockType::q6_k);
  EXPECT_EQ(
      GgufTypes(GgufWeights::q8_0, 16, GgufTypes::Unembedding::tied).of("token_embd.weight", wide),
      BlockType::q8_0);
}

}  // namespace
}  // namespace heed
