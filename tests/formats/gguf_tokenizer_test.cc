// Tokenizers in GGUF files that heed writes: read again they divide texts alike.
#include "formats/gguf_tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/random.h"
#include "checkpoint/gguf.h"
#include "formats/gguf_save.h"
#include "formats/model_files.h"
#include "support/small_model.h"
#include "tokenizer/sentence_piece_directories.h"
#include "tokenizer/sentence_piece_tokenizer.h"
#include "tokenizer/small_metaspace.h"
#include "tokenizer/small_published.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

const fs::path model_goldens = fs::path(HEED_SOURCE_DIR) / "tests/golden";

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

// T5 with spiece.model alone: what SentencePiece's library makes of a text, not what Hugging Face's
// does.
TEST(GgufTokenizers, OfSentencePieceAreReadAsTheyWereWritten) {
  std::vector<std::string> texts = {"",
                                    " ",
                                    "  two   men \t\n",
                                    "\u2581\u2581a<extra_id_0> b</s><pad>",
                                    "\uff21 \ufb01ne \u00bd\u200b \ufeff",
                                    "\xFF\xC3 a",
                                    "\u6ce8\u2603 x"};
  for (const Json& record :
       Json::parse(read_text_file(sentence_piece_goldens() / "goldens.json"))) {
    texts.push_back(record["text"].get<std::string>());
  }
  const char* const listed = R"({"extra_ids": 3, "added_tokens_decoder": {"604": {
      "content": "<new>", "special": false, "lstrip": true, "normalized": false}}})";
  for (const char* config : {"", R"({"extra_ids": 3})", listed}) {
    SCOPED_TRACE(config);
    const fs::path directory = t5_directory(config);
    const auto tokenizer = load_tokenizer(directory);
    std::string kind;
    const auto read = written_and_read(*tokenizer, kind);
    EXPECT_EQ(kind, "t5");
    EXPECT_EQ(read->kind(), TokenizerKind::sentence_piece);
    const EncodeOptions around{.add_beginning = true, .add_ending = true};
    for (const std::string& text : texts) {
      for (const EncodeOptions& options : {around, EncodeOptions{.special_tokens = false}}) {
        ASSERT_EQ(read->encode(text, options), tokenizer->encode(text, options)) << text;
      }
      const auto ids = tokenizer->encode(text + " <new> x<extra_id_1>");
      ASSERT_EQ(read->encode(text + " <new> x<extra_id_1>"), ids) << text;
      ASSERT_EQ(read->decode(ids), tokenizer->decode(ids)) << text;
    }
    fs::remove_all(directory);
  }
}

// Texts of what tokenizers stumble over: marks of the format, special tokens, bytes that are no
// characters, characters without a piece, runs of spaces.
std::vector<std::string> nasty_texts(std::size_t count) {
  constexpr std::string_view parts[] = {"a",
                                        "e",
                                        "the",
                                        "der",
                                        " ",
                                        "  ",
                                        "\t",
                                        "\n",
                                        "\u2581",
                                        "\u2581\u2581",
                                        "<s>",
                                        "</s>",
                                        "<unk>",
                                        "<0x41>",
                                        "<sep>",
                                        "@@",
                                        "@",
                                        "<|turn|>",
                                        "<word>",
                                        "1999",
                                        "\xFF",
                                        "\xE2\x96",
                                        "\xC3",
                                        "\u00e9",
                                        "e\u0301",
                                        "\u6ce8",
                                        "\U0001F469\u200d",
                                        "\u00df",
                                        "\ufeff",
                                        "\u00a0",
                                        ".",
                                        "'s",
                                        "-",
                                        "aaaa"};
  RandomStream random(11, 0);
  std::vector<std::string> texts = {"", " ", "   ", "\u2581", "<s>", "a<sep>", "<sep> a"};
  while (texts.size() < count) {
    std::string text;
    const std::uint64_t length = 1 + random.below(24);
    for (std::uint64_t i = 0; i < length; ++i) text += parts[random.below(std::size(parts))];
    texts.push_back(text);
  }
  return texts;
}

constexpr const char* with_added_tokens = R"({"added_tokens_decoder": {
    "700": {"content": "<|turn|>", "special": true, "normalized": false},
    "701": {"content": "<word>", "special": false, "lstrip": true, "normalized": false}}})";

// LLaMA with tokenizer.model alone. What the library makes of the goldens' texts is compared with
// the model's file in tests/tokenizer.
TEST(GgufTokenizers, OfSentencePiecesBpeAreReadAsTheyWereWritten) {
  std::vector<std::string> texts = nasty_texts(400);
  for (const Json& record :
       Json::parse(read_text_file(sentence_piece_goldens() / "goldens.json"))) {
    texts.push_back(record["text"].get<std::string>());
  }
  for (const char* config :
       {"", R"({"add_bos_token": false, "bos_token": "<s>"})",
        R"({"add_eos_token": true, "eos_token": "</s>"})", with_added_tokens}) {
    SCOPED_TRACE(config);
    const fs::path directory = llama_directory(config);
    const auto tokenizer = load_tokenizer(directory);
    fs::remove_all(directory);
    std::string kind;
    const auto read = written_and_read(*tokenizer, kind);
    EXPECT_EQ(kind, "llama");
    EXPECT_EQ(read->kind(), TokenizerKind::sentence_piece);
    for (const std::string& text : texts) {
      for (const EncodeOptions& options :
           {EncodeOptions{.add_beginning = true, .add_ending = true},
            EncodeOptions{.special_tokens = false}, EncodeOptions{.continues = true}}) {
        ASSERT_EQ(read->encode(text, options), tokenizer->encode(text, options)) << text;
      }
      const auto ids = tokenizer->encode(text);
      ASSERT_EQ(read->decode(ids), tokenizer->decode(ids)) << text;
    }
  }
}

// Pieces that only lead to others, of the user's, and a map of characters: by the rules of the
// library, which other programs' kind llama does not have.
TEST(GgufTokenizers, OfSentencePiecesBpeKeepWhatNoKeySays) {
  SentencePieceModel model = read_sentence_piece_model(
      read_text_file(sentence_piece_goldens() / "llama.model"), "llama.model");
  std::size_t unused = 0;
  for (SentencePiece& piece : model.pieces) {
    const bool is_longer = piece.kind == PieceKind::normal && piece.text.size() > 3;
    if (is_longer && ++unused % 3 == 0) piece.kind = PieceKind::unused;
  }
  ASSERT_GT(unused, 100u);
  model.remove_extra_whitespaces = true;
  model.charsmap_bytes =
      read_sentence_piece_model(read_text_file(sentence_piece_goldens() / "unigram.model"),
                                "unigram.model")
          .charsmap_bytes;
  const std::string bytes = write_sentence_piece_model(model);
  const SentencePieceTokenizer tokenizer(plain_definition(bytes, "tokenizer.model", "made"),
                                         "made");
  std::string kind;
  const auto read = written_and_read(tokenizer, kind);
  EXPECT_EQ(kind, "llama");
  std::size_t split = 0;
  const auto before = load_tokenizer(sentence_piece_goldens() / "llama.model");
  for (const std::string& text : nasty_texts(400)) {
    const auto ids = tokenizer.encode(text);
    ASSERT_EQ(read->encode(text), ids) << text;
    split += ids != before->encode(text) ? 1 : 0;
  }
  EXPECT_GT(split, 100u) << "otherwise nothing was compared";
}

TEST(GgufTokenizers, OfSentencePieceSayWhyTheyAreNotWritten) {
  const fs::path directory = marian_directory({});
  const auto marian = load_tokenizer(directory);
  std::string kind;
  expect_error(
      ErrorCode::unsupported, [&] { written_and_read(*marian, kind); },
      "other ids than the pieces of its SentencePiece model");
  SentencePieceModel model = read_sentence_piece_model(
      read_text_file(sentence_piece_goldens() / "llama.model"), "llama.model");
  std::erase_if(model.pieces, [](const auto& piece) { return piece.kind == PieceKind::byte; });
  model.byte_fallback = false;
  const std::string bytes = write_sentence_piece_model(model);
  const SentencePieceTokenizer no_bytes(plain_definition(bytes, "tokenizer.model", "made"), "made");
  expect_error(
      ErrorCode::unsupported, [&] { written_and_read(no_bytes, kind); },
      "no bytes for unknown characters");
}

// As llama.cpp's own converter lays these keys out.
TEST(GgufTokenizers, OfSentencePiecesBpeHaveTheKeysOfTheirKind) {
  const fs::path directory = llama_directory(with_added_tokens);
  const auto tokenizer = load_tokenizer(directory);
  fs::remove_all(directory);
  GgufMetadata metadata;
  write_gguf_tokenizer(*tokenizer, 704, {.end = 2}, metadata);
  const std::string bytes = gguf_header(metadata, {});
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(bytes)), "written");
  const auto types = file.find_value("tokenizer.ggml.token_type")->integers();
  const auto tokens = file.find_value("tokenizer.ggml.tokens")->texts();
  const auto scores = file.find_value("tokenizer.ggml.scores")->numbers();
  ASSERT_EQ(types.size(), 704u);
  ASSERT_EQ(tokens.size(), 704u);
  ASSERT_EQ(scores.size(), 704u);
  // <unk>, <s>, </s>; the user's three; 256 bytes; pieces by descending score; two added tokens and
  // rows without a token.
  const std::vector<std::int64_t> first(types.begin(), types.begin() + 7);
  EXPECT_EQ(first, (std::vector<std::int64_t>{2, 3, 3, 4, 4, 4, 6}));
  EXPECT_EQ(tokens[3], "<sep>");
  EXPECT_EQ(tokens[6], "<0x00>");
  EXPECT_EQ(std::ranges::count(types, 6), 256);
  EXPECT_EQ(types[262], 1);
  EXPECT_GT(scores[262], scores[263]);
  const std::vector<std::int64_t> last(types.end() - 4, types.end());
  EXPECT_EQ(last, (std::vector<std::int64_t>{3, 4, 5, 5}));
  EXPECT_EQ(tokens[700], "<|turn|>");
  EXPECT_TRUE(file.find_value("tokenizer.ggml.add_bos_token")->boolean());
  EXPECT_FALSE(file.find_value("tokenizer.ggml.add_eos_token")->boolean());
  EXPECT_TRUE(file.find_value("tokenizer.ggml.add_space_prefix")->boolean());
  for (const auto& [key, id] :
       {std::pair("bos", 1), std::pair("eos", 2), std::pair("unknown", 0)}) {
    EXPECT_EQ(file.find_value(fmt::format("tokenizer.ggml.{}_token_id", key))->integer(), id);
  }
}

// A whole LLaMA: written as a file, and as a directory again.
TEST(GgufTokenizers, OfSentencePiecesBpeGoWithTheirModel) {
  const testing::ScratchDirectory scratch;
  const fs::path source = scratch.path() / "source", file = scratch.path() / "llama.gguf",
                 back = scratch.path() / "back";
  StackSpecification stack =
      load_transformer(StacksWanted::one, model_goldens / "families/llama").specification();
  stack.vocabulary_size = 702;
  Transformer model({.stacks = {stack}});
  model.parameters().initialize(3);
  save_transformer(model, source);
  write_text_file(source / "tokenizer.model",
                  read_text_file(sentence_piece_goldens() / "llama.model"));
  write_text_file(source / "tokenizer_config.json", with_added_tokens);
  const auto tokenizer = require_tokenizer(source);
  save_gguf(model, file, read_source_files(source), {.name = "a", .tokenizer = tokenizer.get()},
            GgufWeights::f32);
  save_transformer(load_transformer(StacksWanted::one, file), back, read_source_files(file));
  EXPECT_TRUE(fs::exists(back / "tokenizer.model"));
  for (const fs::path& path : {file, back}) {
    const auto read = require_tokenizer(path);
    for (const std::string& text : nasty_texts(200)) {
      const EncodeOptions around{.add_beginning = true, .add_ending = true};
      ASSERT_EQ(read->encode(text, around), tokenizer->encode(text, around)) << path << text;
    }
  }
}

// A whole model: written as a file, and as a directory again.
TEST(GgufTokenizers, OfSentencePieceGoWithTheirModel) {
  const testing::ScratchDirectory scratch;
  const fs::path directory = t5_directory(R"({"extra_ids": 3})");
  const auto tokenizer = load_tokenizer(directory);
  fs::remove_all(directory);
  Architecture architecture = read_architecture(model_goldens / "pairs/t5_gated");
  for (StackSpecification& stack : architecture.stacks) stack.vocabulary_size = 610;
  Transformer model(architecture);
  model.parameters().initialize(3);
  const fs::path file = scratch.path() / "t5.gguf";
  save_gguf(model, file, {}, {.name = "t5", .tokenizer = tokenizer.get()}, GgufWeights::f32);
  save_transformer(load_transformer(StacksWanted::two, file), scratch.path() / "model",
                   read_source_files(file));
  EXPECT_TRUE(fs::exists(scratch.path() / "model/spiece.model"));
  for (const fs::path& path : {file, scratch.path() / "model"}) {
    const auto read = require_tokenizer(path);
    for (const char* text : {"Two  men \ufb01ne <extra_id_2>", "\u2581 a</s>"}) {
      EXPECT_EQ(read->encode(text), tokenizer->encode(text)) << path;
    }
  }
}

// Accents, case, ideographs, controls, marks of the format's own, and names of special tokens.
TEST(GgufTokenizers, OfBertTreatLettersAsTheyDid) {
  const std::vector<std::string> texts = {"Élevé ÉLEVÉ e\u0301leve\u0301 eleve",
                                          "The CAT's un-sat, UNAFFABLE \u6ce8\u6ce8s cats",
                                          "\u0130stanbul \u00df \ufb01 \u01c4 A\u030a",
                                          "b\u200b\u00ada\x07\ufeff\ufffd the\u00a0cat\u3000sat",
                                          "\u2581the ##s ##a [CLS] [cls] [MASK]the[SEP] \u2581",
                                          "the,cat.'s\u2019\u00bf\uff01$^`~ a$a",
                                          std::string(101, 'a') + " " + std::string(100, 'a'),
                                          "\xFF\xC3 the"};
  Json documents[4];
  for (int bits = 0; bits < 4; ++bits) {
    Json& document = documents[bits] = small_word_piece_document();
    document["normalizer"]["lowercase"] = (bits & 1) != 0;
    document["normalizer"]["strip_accents"] = (bits & 2) != 0;
    for (const char* token : {"The", "Élevé", "CAT", "b", "##b", "▁", "##▁the", "##"}) {
      Json& vocabulary = document["model"]["vocab"];
      vocabulary.emplace(token, vocabulary.size());
    }
  }
  std::vector<std::vector<std::int32_t>> all;
  for (const Json& document : documents) {
    const auto tokenizer = parse_tokenizer_json(document.dump(), "bert");
    std::string kind;
    const auto read = written_and_read(*tokenizer, kind);
    EXPECT_EQ(kind, "bert");
    for (const std::string& text : texts) {
      EXPECT_EQ(read->encode(text), tokenizer->encode(text)) << text;
      EXPECT_EQ(read->decode(read->encode(text)), tokenizer->decode(tokenizer->encode(text)));
    }
    all.push_back(tokenizer->encode(texts.front()));
  }
  // Each of the four is told from the others by the first text.
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

// As other programs write them: no keys of normalisation, roles by names of their own.
TEST(GgufTokenizers, OfBertAreLowerCaseWithoutAKey) {
  GgufMetadata metadata;
  const std::vector<std::string> tokens = {
      "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2581the", "s", "\u2581eleve", "\u2581covid"};
  // The last was added to the vocabulary.
  const std::vector<std::int32_t> types = {3, 3, 3, 3, 3, 1, 1, 1, 4};
  metadata.add("tokenizer.ggml.model", std::string_view("bert"));
  metadata.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  metadata.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
  for (const auto& [role, id] :
       {std::pair{"unknown", 1U}, std::pair{"seperator", 3U}, std::pair{"padding", 0U},
        std::pair{"cls", 2U}, std::pair{"mask", 4U}}) {
    metadata.add(fmt::format("tokenizer.ggml.{}_token_id", role), std::uint32_t{id});
  }
  const std::string bytes = gguf_header(metadata, {});
  const auto read =
      read_gguf_tokenizer(GgufFile::parse(std::as_bytes(std::span(bytes)), "written"));
  const EncodeOptions around{.add_beginning = true, .add_ending = true};
  EXPECT_EQ(read->encode("THEs Élevé [MASK] s", around),
            (std::vector<std::int32_t>{2, 5, 6, 7, 4, 1, 3}));
  EXPECT_EQ(read->encode("the covid"), (std::vector<std::int32_t>{5, 8}));
  EXPECT_EQ(read->decode(std::vector<std::int32_t>{5, 8}), "the covid");
}

// WordPiece that does not part ideographs, keeps spaces before full stops, or finds an added token
// as a whole word alone, and merges that scores do not give, are no kinds of the
// format's: they are written whole, as tokenizer.json.
TEST(GgufTokenizers, OfNoKindAreWrittenWhole) {
  Json joined = small_word_piece_document();
  joined["normalizer"]["handle_chinese_chars"] = false;
  Json spaced = small_word_piece_document();
  spaced["decoder"]["cleanup"] = false;
  Json whole = small_word_piece_document();
  whole["added_tokens"].back()["single_word"] = true;
  for (const Json& document : {joined, spaced, whole, small_metaspace_json()}) {
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
