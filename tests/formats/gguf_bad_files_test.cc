// Metadata that describes no model, and tokenizers that are none: each is refused with a message of
// its own, which names the key, its value and what was expected.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/expect_error.h"
#include "base/files.h"
#include "formats/gguf_tokenizer.h"
#include "formats/model_files.h"
#include "formats/small_gguf.h"
#include "support/small_model.h"
#include "tokenizer/byte_pair_tokenizer.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::read_small;
using testing::small_bert;
using testing::small_llama;
using enum ErrorCode;

struct BadKey {
  std::string key;
  std::function<void(GgufMetadata&)> add;
  ErrorCode code;
  std::vector<std::string> parts;  // of the message
};

template <class Value>
BadKey bad(std::string key, Value value, ErrorCode code, std::vector<std::string> parts) {
  return {key, [key, value](GgufMetadata& metadata) { metadata.add(key, value); }, code,
          std::move(parts)};
}

constexpr std::uint32_t zero = 0, three = 3, many = 1U << 30;

TEST(GgufBadMetadata, IsRefusedByKeyAndValue) {
  const std::vector<BadKey> cases = {
      bad("general.architecture", std::string_view("mamba"), unsupported,
          {"'general.architecture' is 'mamba'", "gpt2, llama, qwen2"}),
      bad("general.architecture", three, corrupt_data, {"is a u32; expected a string"}),
      bad("llama.context_length", zero, corrupt_data, {"'llama.context_length' is 0", "1 to"}),
      bad("llama.context_length", std::string_view("64"), corrupt_data,
          {"'llama.context_length' is a string; expected integers"}),
      bad("llama.embedding_length", many, corrupt_data, {"is 1073741824; expected 1 to 16777216"}),
      bad("llama.block_count", zero, corrupt_data,
          {"'llama.block_count' is 0; expected 1 to 4096"}),
      bad("llama.feed_forward_length", 16.0F, corrupt_data, {"is a f32; expected integers"}),
      bad("llama.attention.head_count", three, corrupt_data,
          {"'llama.attention.head_count' is 3, which does not divide 'llama.embedding_length', 8"}),
      bad("llama.attention.head_count_kv", three, corrupt_data,
          {"'llama.attention.head_count_kv' is 3, which does not divide "
           "'llama.attention.head_count', 2"}),
      bad("llama.attention.layer_norm_rms_epsilon", -1.0F, corrupt_data,
          {"is -1; expected a number above 0"}),
      bad("llama.rope.freq_base", 0.0F, corrupt_data, {"'llama.rope.freq_base' is 0"}),
      bad("llama.rope.dimension_count", three, corrupt_data,
          {"is 3; expected an even number up to 4"}),
      bad("llama.rope.dimension_count", std::uint32_t{2}, unsupported, {"is 2 of the 4 channels"}),
      bad("llama.rope.scaling.type", std::string_view("longrope"), unsupported,
          {"is 'longrope'; heed supports none, linear and yarn"}),
      bad("llama.rope.scaling.type", std::string_view("linear"), corrupt_data,
          {"'llama.rope.scaling.factor' is missing"}),
      bad("llama.attention.value_length", std::uint32_t{8}, unsupported,
          {"'llama.attention.value_length' is 8", "one size, here 4"}),
      bad("llama.expert_count", std::uint32_t{8}, unsupported,
          {"'llama.expert_count' is 8; heed does not support it"}),
      bad("llama.vocab_size", std::uint32_t{9}, corrupt_data,
          {"'llama.vocab_size' is 9, but 'token_embd.weight' has 10 rows"}),
      bad("tokenizer.ggml.eos_token_id", std::uint32_t{10}, corrupt_data,
          {"'tokenizer.ggml.eos_token_id' is 10; expected 0 to 9"})};
  EXPECT_EQ(read_small(small_llama())["hidden_size"], 8);
  for (const BadKey& each : cases) {
    SCOPED_TRACE(each.key);
    GgufMetadata metadata = small_llama(each.key);
    each.add(metadata);
    for (const std::string& part : each.parts) {
      expect_error(
          each.code, [&] { read_small(metadata); }, "small.gguf", part);
    }
  }
}

TEST(GgufBadMetadata, OfBertIsRefusedByKeyAndValue) {
  const std::vector<BadKey> cases = {
      bad("bert.attention.causal", true, unsupported,
          {"'bert.attention.causal' is true; heed supports encoders"}),
      bad("bert.attention.causal", zero, corrupt_data, {"'bert.attention.causal' is a u32"}),
      bad("bert.attention.head_count", three, corrupt_data,
          {"is 3, which does not divide 'bert.embedding_length', 8"}),
      bad("bert.attention.layer_norm_epsilon", 0.0F, corrupt_data,
          {"'bert.attention.layer_norm_epsilon' is 0; expected a number above 0"}),
      bad("bert.pooling_type", std::uint32_t{5}, corrupt_data,
          {"'bert.pooling_type' is 5; expected 0 to 4"}),
      bad("bert.attention.key_length", std::uint32_t{8}, unsupported,
          {"'bert.attention.key_length' is 8", "one size, here 4"}),
      bad("bert.expert_count", std::uint32_t{8}, unsupported, {"'bert.expert_count' is 8"}),
      bad("tokenizer.ggml.token_type_count", three, corrupt_data,
          {"'tokenizer.ggml.token_type_count' is 3, but 'token_types.weight' has 2 rows"}),
      bad("tokenizer.ggml.padding_token_id", std::uint32_t{10}, corrupt_data,
          {"'tokenizer.ggml.padding_token_id' is 10; expected 0 to 9"})};
  const Json good = read_small(small_bert());
  EXPECT_EQ(good["type_vocab_size"], 2);
  EXPECT_EQ(good["architectures"], Json::array({"BertModel"}));
  EXPECT_EQ(good["pooling_type"], 1);
  EXPECT_EQ(good["layer_norm_eps"], 1e-12);
  for (const BadKey& each : cases) {
    SCOPED_TRACE(each.key);
    GgufMetadata metadata = small_bert(each.key);
    each.add(metadata);
    for (const std::string& part : each.parts) {
      expect_error(
          each.code, [&] { read_small(metadata); }, "small.gguf", part);
    }
  }
  expect_error(
      corrupt_data, [&] { read_small(small_bert(), 10, {16}); }, "'token_types.weight' has shape",
      "one row a type");
  for (const char* key : {"bert.context_length", "bert.embedding_length", "bert.block_count",
                          "bert.feed_forward_length", "bert.attention.head_count",
                          "bert.attention.layer_norm_epsilon"}) {
    expect_error(
        corrupt_data, [&] { read_small(small_bert(key)); },
        "'" + std::string(key) + "' is missing");
  }
}

TEST(GgufBadMetadata, NamesAMissingKey) {
  for (const char* key : {"general.architecture", "llama.context_length", "llama.embedding_length",
                          "llama.block_count", "llama.feed_forward_length",
                          "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    expect_error(
        corrupt_data, [&] { read_small(small_llama(key)); },
        "'" + std::string(key) + "' is missing");
  }
}

TEST(GgufBadTensors, AreRefusedByName) {
  const testing::ScratchDirectory scratch;
  const std::filesystem::path path = scratch.path() / "small.gguf";
  const auto write = [&](std::vector<std::pair<std::string, Shape>> shapes,
                         const GgufMetadata& metadata = small_llama()) {
    std::vector<OutgoingBlocks> tensors;
    for (const auto& [name, shape] : shapes) {
      const std::vector<float> zeros(static_cast<std::size_t>(shape.size()));
      tensors.push_back(
          {.name = name,
           .type = BlockType::f32,
           .shape = shape,
           .produce = [zeros](const ByteSink& sink) { sink(std::as_bytes(std::span(zeros))); }});
    }
    AtomicFile file(path);
    write_gguf(file, metadata, tensors);
    file.commit();
  };
  const auto load = [&] { load_transformer(StacksWanted::one, path); };
  write({{"output_norm.weight", {8}}});
  expect_error(corrupt_data, load, "'token_embd.weight' is missing");
  write({{"token_embd.weight", {80}}});
  expect_error(corrupt_data, load, "'token_embd.weight' has shape", "one row a token");
  write({{"token_embd.weight", {10, 8}}});
  expect_error(corrupt_data, load, "'blk.0.attn_norm.weight' is missing",
               "its metadata requires 8");
  write({{"token_embd.weight", {10, 8}}, {"blk.0.ffn_gate_exps.weight", {8}}});
  expect_error(corrupt_data, load, "unexpected tensor 'blk.0.ffn_gate_exps.weight'");

  const std::vector<std::pair<std::string, Shape>> embeddings = {{"token_embd.weight", {10, 8}},
                                                                 {"token_types.weight", {2, 8}}};
  write({embeddings.front()}, small_bert());
  expect_error(ErrorCode::unsupported, load, "'token_types.weight' is missing");
  write(embeddings, small_bert());
  expect_error(corrupt_data, load, "'position_embd.weight' is missing");
  for (const char* surplus : {"output.weight", "output_norm.weight", "blk.0.attn_qkv.weight"}) {
    auto tensors = embeddings;
    tensors.push_back({surplus, {8}});
    write(tensors, small_bert());
    expect_error(corrupt_data, load, "unexpected tensor '" + std::string(surplus) + "'");
  }
}

// A tokenizer's keys: byte-level BPE of 256 bytes and one merge.
GgufMetadata small_byte_pairs(const std::string& left_out,
                              const std::vector<std::string>& merges = {"a b"}) {
  GgufMetadata metadata;
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(bytes_to_letters(std::string(1, static_cast<char>(byte))));
  }
  tokens.emplace_back("ab");
  metadata.add("general.architecture", std::string_view("llama"));
  if (left_out != "model") metadata.add("tokenizer.ggml.model", std::string_view("gpt2"));
  if (left_out != "pre") metadata.add("tokenizer.ggml.pre", std::string_view("gpt-2"));
  if (left_out != "tokens") {
    metadata.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  }
  if (left_out != "merges") {
    metadata.add("tokenizer.ggml.merges", std::span<const std::string>(merges));
  }
  return metadata;
}

std::unique_ptr<Tokenizer> read_tokenizer(const GgufMetadata& metadata) {
  const std::string bytes = gguf_header(metadata, {});
  return read_gguf_tokenizer(GgufFile::parse(std::as_bytes(std::span(bytes)), "small.gguf"));
}

TEST(GgufBadTokenizer, IsRefusedByKeyAndValue) {
  EXPECT_EQ(read_tokenizer(small_byte_pairs(""))->encode("ab"), std::vector<std::int32_t>{256});
  EXPECT_EQ(read_tokenizer(small_byte_pairs("model")), nullptr);
  const auto refused = [&](const std::string& left_out, ErrorCode code, const std::string& part,
                           const std::function<void(GgufMetadata&)>& add = {},
                           const std::vector<std::string>& merges = {"a b"}) {
    GgufMetadata metadata = small_byte_pairs(left_out, merges);
    if (add) add(metadata);
    expect_error(
        code, [&] { read_tokenizer(metadata); }, "small.gguf", part);
  };
  const std::vector<std::int32_t> two_types = {1, 1};
  std::vector<std::int32_t> wrong_types(257, 1);
  wrong_types[7] = 9;
  const std::vector<std::string> not_text = {"\xFF"};
  const std::vector<float> one_score = {0};
  refused("tokens", corrupt_data, "'tokenizer.ggml.tokens' is missing");
  refused("merges", corrupt_data, "'tokenizer.ggml.merges' is missing");
  refused("pre", unsupported, "'tokenizer.ggml.pre' is 'default'; heed knows the words of gpt-2");
  refused("", corrupt_data, "merge 0 of 'tokenizer.ggml.merges' is 'ab'", {}, {"ab"});
  refused("", corrupt_data, "merge 0", {}, {"a c"});
  refused("model", unsupported, "'tokenizer.ggml.model' is 'rwkv'; heed reads tokenizers of gpt2",
          [](GgufMetadata& m) { m.add("tokenizer.ggml.model", std::string_view("rwkv")); });
  refused("", corrupt_data, "'tokenizer.ggml.token_type' holds 2 values; expected 257",
          [&](GgufMetadata& m) {
            m.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(two_types));
          });
  refused("", corrupt_data, "'tokenizer.ggml.token_type' is 9 for token 7; expected 1 to 6",
          [&](GgufMetadata& m) {
            m.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(wrong_types));
          });
  refused("tokens", corrupt_data, "token 0 of 'tokenizer.ggml.tokens'", [&](GgufMetadata& m) {
    m.add("tokenizer.ggml.tokens", std::span<const std::string>(not_text));
  });
  refused("", corrupt_data, "'tokenizer.ggml.bos_token_id' is 300; expected 0 to 256",
          [](GgufMetadata& m) { m.add("tokenizer.ggml.bos_token_id", std::uint32_t{300}); });
  refused("", corrupt_data, "'tokenizer.ggml.add_bos_token' is true, but no key names the token",
          [](GgufMetadata& m) { m.add("tokenizer.ggml.add_bos_token", true); });
  refused("model", corrupt_data, "'tokenizer.ggml.scores' is missing",
          [](GgufMetadata& m) { m.add("tokenizer.ggml.model", std::string_view("llama")); });
  refused("model", corrupt_data, "'tokenizer.ggml.scores' holds 1 values; expected 257",
          [&](GgufMetadata& m) {
            m.add("tokenizer.ggml.model", std::string_view("llama"));
            m.add("tokenizer.ggml.scores", std::span<const float>(one_score));
          });
}

// heed's key for SentencePiece's models, and what it contradicts.
TEST(GgufBadSentencePieces, AreRefusedByKeyAndValue) {
  const auto refused = [](const std::string& own, const std::string& part,
                          std::vector<std::int32_t> types = {3, 2, 1},
                          const std::vector<float>& scores = {0, 0, -1}) {
    const std::vector<std::string> tokens = {"</s>", "<unk>", "\u2581a"};
    GgufMetadata metadata;
    metadata.add("tokenizer.ggml.model", std::string_view("t5"));
    metadata.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
    metadata.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
    metadata.add("tokenizer.ggml.scores", std::span<const float>(scores));
    metadata.add("tokenizer.ggml.eos_token_id", std::uint32_t{0});
    metadata.add("heed.sentence_pieces", std::string_view(own));
    if (part.empty()) return void(read_tokenizer(metadata));
    expect_error(
        corrupt_data, [&] { read_tokenizer(metadata); }, "small.gguf", part);
  };
  const std::string good = R"({"pieces": 3, "added_tokens": [{"id": 0, "content": "</s>"}]})";
  refused(good, "");
  refused("{", "'heed.sentence_pieces'");
  refused("{}", "pieces");
  refused(R"({"pieces": 0})", "'pieces'");
  refused(R"({"pieces": 4})", "'heed.sentence_pieces' is of 4 pieces, but there are 3 tokens");
  refused(R"({"pieces": 3, "added_tokens": [{"id": 9, "content": "x"}]})", "'x'");
  refused(R"({"pieces": 3, "added_tokens": [{"id": 2, "content": "x"}]})", "'x'");
  refused(R"({"pieces": 3, "added_tokens": 7})", "added_tokens");
  refused(good, "none of the 3 pieces is unknown", {3, 1, 1});
  refused(good, "are both unknown", {3, 2, 2});
  refused(good, "pieces are bytes", {3, 2, 6});
  refused(good, "'tokenizer.ggml.scores' of token 2 is inf", {3, 2, 1},
          {0, 0, std::numeric_limits<float>::infinity()});
}

// Ids of WordPiece's tokens in heed's key.
TEST(GgufBadWordPieces, AreRefusedByKeyAndValue) {
  const auto refused = [](const std::string& key, auto value, const std::string& part) {
    const std::vector<std::string> tokens = {"[UNK]", "[CLS]", "[SEP]", "\u2581a"};
    GgufMetadata metadata;
    metadata.add("tokenizer.ggml.model", std::string_view("bert"));
    metadata.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
    const std::pair<const char*, std::uint32_t> roles[] = {
        {"unknown", 0}, {"cls", 1}, {"seperator", 2}};
    for (const auto& [role, id] : roles) {
      const std::string name = "tokenizer.ggml." + std::string(role) + "_token_id";
      if (name != key) metadata.add(name, id);
    }
    metadata.add(key, value);
    expect_error(
        corrupt_data, [&] { read_tokenizer(metadata); }, "small.gguf", part);
  };
  const std::vector<std::int32_t> beyond = {3, 4}, below = {-1};
  refused("heed.continuations", std::span<const std::int32_t>(beyond),
          "'heed.continuations' holds the token 4; expected 0 to 3");
  refused("heed.continuations", std::span<const std::int32_t>(below), "holds the token -1");
  refused("tokenizer.ggml.normalizer.lowercase", std::uint32_t{1},
          "'tokenizer.ggml.normalizer.lowercase' is a u32; expected");
  refused("tokenizer.ggml.unknown_token_id", std::uint32_t{4}, "is 4; expected 0 to 3");
  refused("tokenizer.ggml.cls_token_id", std::uint32_t{9}, "is 9; expected 0 to 3");
}

}  // namespace
}  // namespace heed
