// GGUF files that heed writes: read again they are the model, with its tokenizer and chat template.
#include "formats/gguf_save.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/expect_error.h"
#include "base/files.h"
#include "checkpoint/gguf.h"
#include "formats/gguf_tokenizer.h"
#include "formats/model_files.h"
#include "generate/random_transformer.h"
#include "support/small_model.h"
#include "tokenizer/small_metaspace.h"
#include "tokenizer/small_published.h"
#include "tokenizer/tokenizer_files.h"

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
  const Transformer bert = load_transformer(StacksWanted::one, golden("pairs/bert"));
  expect_error(
      ErrorCode::unsupported,
      [&] { saved_and_read(bert, read_source_files(golden("pairs/bert")), file); },
      "does not write models of type 'bert'");
  EXPECT_FALSE(fs::exists(file));
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

std::unique_ptr<Tokenizer> written_and_read(const Tokenizer& tokenizer, std::string& kind) {
  GgufMetadata metadata;
  write_gguf_tokenizer(tokenizer, tokenizer.vocabulary_size() + 3, {}, metadata);
  const std::string bytes = gguf_header(metadata, {});
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(bytes)), "written");
  kind = file.find_value("tokenizer.ggml.model")->text();
  return read_gguf_tokenizer(file);
}

// Without the merge of "o▁" and "t": SentencePiece would also make that token of "o" and "▁t".
Json small_sentence_pieces() {
  Json document = small_metaspace_json();
  document["model"]["vocab"].erase("o▁t");
  std::erase(document["model"]["merges"].get_ref<Json::array_t&>(), Json("o▁ t"));
  return document;
}

TEST(GgufTokenizers, AreReadAsTheyWereWritten) {
  const std::pair<std::string, std::unique_ptr<Tokenizer>> tokenizers[] = {
      {"gpt2", testing::microworld_tokenizer()},
      {"llama", small_metaspace(small_sentence_pieces())},
      {"bert", parse_tokenizer_json(small_word_piece_document().dump(), "bert")},
      {"t5", parse_tokenizer_json(small_unigram_document().dump(), "t5")}};
  for (const auto& [expected_kind, tokenizer] : tokenizers) {
    SCOPED_TRACE(expected_kind);
    std::string kind;
    const auto read = written_and_read(*tokenizer, kind);
    EXPECT_EQ(kind, expected_kind);
    for (const char* text : {"the cat sat on the mat.", "  The  eaten 注 é\n\t",
                             "<|endoftext|></s>a", "", " ", "unaffable cats", "\xFFnot text"}) {
      const EncodeOptions around{.add_beginning = true, .add_ending = true};
      EXPECT_EQ(read->encode(text, around), tokenizer->encode(text, around)) << text;
      EXPECT_EQ(read->decode(read->encode(text)), tokenizer->decode(tokenizer->encode(text)));
    }
  }
}

// Falcon's words, which no other name has.
TEST(GgufTokenizers, OfFalconAreCutInItsSteps) {
  Json document = Json::parse(testing::microworld_tokenizer()->to_json());
  // A token that GPT-2's words have, and Falcon's have not: an apostrophe with a letter.
  Json& merges = document["model"]["merges"];
  merges.push_back(merges[0].is_string() ? Json("' t") : Json({"'", "t"}));
  document["model"]["vocab"]["'t"] = testing::microworld_tokenizer()->vocabulary_size();
  const auto gpt2 = parse_tokenizer_json(document.dump(), "gpt2");
  document["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Punctuation", "behavior": "Contiguous"},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
      {"type": "Digits", "individual_digits": false},
      {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated",
       "invert": false}]})");
  const auto tokenizer = parse_tokenizer_json(document.dump(), "falcon");
  GgufMetadata metadata;
  write_gguf_tokenizer(*tokenizer, tokenizer->vocabulary_size(), {}, metadata);
  const std::string bytes = gguf_header(metadata, {});
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(bytes)), "written");
  EXPECT_EQ(file.find_value("tokenizer.ggml.pre")->text(), "falcon");
  const auto read = read_gguf_tokenizer(file);
  const std::string text = "the cat sat. It isn't 12345 the";
  EXPECT_EQ(read->encode(text), tokenizer->encode(text));
  EXPECT_NE(read->encode(text), gpt2->encode(text));
}

// Cased WordPiece, and merges that scores do not give, are no kinds of the format's: they are
// written whole, as tokenizer.json.
TEST(GgufTokenizers, OfNoKindAreWrittenWhole) {
  Json cased = small_word_piece_document();
  cased["normalizer"]["lowercase"] = false;
  for (const Json& document : {cased, small_metaspace_json()}) {
    const auto tokenizer = parse_tokenizer_json(document.dump(), "no kind");
    std::string kind;
    const auto read = written_and_read(*tokenizer, kind);
    EXPECT_EQ(kind, "none");
    EXPECT_EQ(read->to_json(), tokenizer->to_json());
  }
}

TEST(GgufTokenizers, HaveATokenForEachRowOfTheEmbedding) {
  GgufMetadata metadata;
  const auto tokenizer = testing::microworld_tokenizer();
  expect_error(
      ErrorCode::corrupt_data, [&] { write_gguf_tokenizer(*tokenizer, 100, {}, metadata); },
      "the model's embedding has 100 rows");
}

}  // namespace
}  // namespace heed
