// Compares with what SentencePiece's own Python package made: see
// tests/golden/sentence_piece/make_goldens.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "base/utf8.h"
#include "tokenizer/sentence_piece_directories.h"
#include "tokenizer/tokenizer.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct GoldenText {
  std::string model;
  std::string text;
  std::vector<std::int32_t> ids;
  std::string decoded;
};

std::vector<GoldenText> golden_texts() {
  std::vector<GoldenText> texts;
  const std::string json = read_text_file(sentence_piece_goldens() / "goldens.json");
  for (const Json& record : parse_json(json, "goldens.json")) {
    texts.push_back({record["model"].get<std::string>(), record["text"].get<std::string>(),
                     record["ids"].get<std::vector<std::int32_t>>(),
                     record["decoded"].get<std::string>()});
  }
  return texts;
}

TEST(SentencePiece, EqualsItsOwnLibrary) {
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers;
  for (const auto& [name, size] :
       {std::pair("unigram", 600), std::pair("bpe", 800), std::pair("llama", 700)}) {
    auto loaded = load_tokenizer(sentence_piece_goldens() / (std::string(name) + ".model"));
    EXPECT_EQ(loaded->vocabulary_size(), size);
    tokenizers[name] = std::move(loaded);
  }
  std::map<std::string, std::size_t> tokens;
  for (const GoldenText& golden : golden_texts()) {
    const Tokenizer& tokenizer = *tokenizers.at(golden.model);
    // The library knows no special tokens in texts.
    const auto ids = tokenizer.encode(golden.text, {.special_tokens = false});
    ASSERT_EQ(ids, golden.ids) << golden.model << ": " << printable(golden.text);
    ASSERT_EQ(tokenizer.decode(ids, {.special_tokens = false}), golden.decoded)
        << golden.model << ": " << printable(golden.text);
    tokens[golden.model] += ids.size();
  }
  for (const auto& [name, count] : tokens) EXPECT_GT(count, 1500u) << name;
  EXPECT_EQ(tokens.size(), 3u);
}

TEST(SentencePiece, SpansCoverTheText) {
  for (const char* name : {"unigram.model", "bpe.model", "llama.model"}) {
    const auto tokenizer = load_tokenizer(sentence_piece_goldens() / name);
    for (const GoldenText& golden : golden_texts()) {
      const auto ids = tokenizer->encode(golden.text);
      const auto spans = tokenizer->encode_with_offsets(golden.text);
      ASSERT_EQ(spans.size(), ids.size());
      std::size_t end = 0;
      for (std::size_t i = 0; i < spans.size(); ++i) {
        ASSERT_EQ(spans[i].id, ids[i]);
        ASSERT_EQ(spans[i].begin, end);
        end = spans[i].end;
      }
      ASSERT_EQ(end, spans.empty() ? 0 : golden.text.size());
    }
  }
}

TEST(SentencePiece, SpansAreOfTheWordsThatTokensStandFor) {
  const auto tokenizer = load_tokenizer(sentence_piece_goldens() / "unigram.model");
  const std::string_view text = "A  man in ﬁne weather";
  std::string joined;
  for (const TokenSpan& span : tokenizer->encode_with_offsets(text)) {
    joined += "[" + std::string(text.substr(span.begin, span.end - span.begin)) + "]";
  }
  EXPECT_THAT(joined, HasSubstr("[A][  man][ in]"));
}

TEST(SentencePiece, IsSavedAsItIs) {
  const auto tokenizer = load_tokenizer(sentence_piece_goldens() / "bpe.model");
  ASSERT_EQ(tokenizer->files().size(), 1u);
  EXPECT_EQ(tokenizer->files()[0].name, "bpe.model");
  EXPECT_EQ(tokenizer->files()[0].content, read_text_file(sentence_piece_goldens() / "bpe.model"));
  EXPECT_THROW(tokenizer->to_json(), Error);
}

TEST(LlamaTokenizer, BeginsTextsUnlessFilesSayOtherwise) {
  const auto encoded = [](const std::string& config, const EncodeOptions& options) {
    const auto directory = llama_directory(config);
    auto ids = load_tokenizer(directory)->encode("A man", options);
    std::filesystem::remove_all(directory);
    return ids;
  };
  const std::vector<std::int32_t> plain = encoded("", {});
  ASSERT_GE(plain.size(), 2u);
  std::vector<std::int32_t> with_begin = plain, with_both = plain;
  with_begin.insert(with_begin.begin(), 1);
  with_both = with_begin;
  with_both.push_back(2);
  const EncodeOptions around{.add_beginning = true, .add_ending = true};
  EXPECT_EQ(encoded("", around), with_begin);
  EXPECT_EQ(encoded(R"({"tokenizer_class": "LlamaTokenizer"})", around), with_begin);
  EXPECT_EQ(encoded(R"({"add_bos_token": false, "bos_token": "<s>"})", around), plain);
  EXPECT_EQ(encoded(R"({"add_eos_token": true, "eos_token": {"content": "</s>"}})", around),
            with_both);
  EXPECT_THROW(encoded(R"({"tokenizer_class": "XGLMTokenizer"})", {}), Error);
  EXPECT_THROW(encoded(R"({"add_eos_token": true, "eos_token": "<end>"})", {}), Error);
}

TEST(LlamaTokenizer, FindsAddedTokensAndItsOwnSpecialOnes) {
  const auto directory = llama_directory(R"({"added_tokens_decoder": {
      "700": {"content": "<|turn|>", "special": true, "normalized": false},
      "701": {"content": "<word>", "special": false, "normalized": false}}})");
  const auto tokenizer = load_tokenizer(directory);
  EXPECT_EQ(tokenizer->vocabulary_size(), 702);
  EXPECT_EQ(tokenizer->beginning_of_text(), 1);
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  const auto part = tokenizer->encode("a man");
  std::vector<std::int32_t> expected = {1};
  expected.insert(expected.end(), part.begin(), part.end());
  expected.push_back(700);
  expected.insert(expected.end(), part.begin(), part.end());
  expected.insert(expected.end(), {701, 2});
  EXPECT_EQ(tokenizer->encode("<s>a man<|turn|>a man<word></s>"), expected);
  // As text, every character of it; a piece of the user's is one token in either.
  EXPECT_GT(tokenizer->encode("<|turn|>", {.special_tokens = false}).size(), 3u);
  const auto separator = tokenizer->encode("a<sep>b");
  EXPECT_EQ(separator, tokenizer->encode("a<sep>b", {.special_tokens = false}));
  EXPECT_EQ(std::ranges::count(separator, tokenizer->encode("<sep>").back()), 1);
  const auto saved = testing::new_directory("llama_saved");
  tokenizer->save(saved);
  const auto again = load_tokenizer(saved);
  EXPECT_EQ(again->content_key(), tokenizer->content_key());
  EXPECT_EQ(again->encode("<s>a man<|turn|>"), tokenizer->encode("<s>a man<|turn|>"));
}

// A part of a text gets no space of its own, in front of which another would stand.
TEST(LlamaTokenizer, ContinuesAText) {
  const auto directory = llama_directory("");
  const auto tokenizer = load_tokenizer(directory);
  const auto whole = tokenizer->encode("A man is on a ladder");
  const auto first = tokenizer->encode("A man");
  const auto rest = tokenizer->encode(" is on a ladder", {.continues = true});
  std::vector<std::int32_t> joined = first;
  joined.insert(joined.end(), rest.begin(), rest.end());
  EXPECT_EQ(joined, whole);
  EXPECT_NE(tokenizer->encode(" is on a ladder"), rest);
  EXPECT_NE(tokenizer->encode("ing", {.continues = true}), tokenizer->encode("ing"));
}

TEST(T5Tokenizer, EndsTextsAndHasExtraTokens) {
  const auto directory = t5_directory(R"({"extra_ids": 3, "eos_token": "</s>"})");
  const auto tokenizer = load_tokenizer(directory);
  EXPECT_EQ(tokenizer->vocabulary_size(), 603);
  EXPECT_EQ(tokenizer->find_added_token("<extra_id_0>"), 602);
  EXPECT_EQ(tokenizer->find_added_token("<extra_id_2>"), 600);
  EXPECT_EQ(tokenizer->padding(), 0);
  EXPECT_EQ(tokenizer->end_of_text(), 1);
  EXPECT_EQ(tokenizer->unknown(), 2);
  EXPECT_FALSE(tokenizer->start());
  const auto plain = tokenizer->encode("A man");
  auto expected = plain;
  expected.push_back(602);
  expected.insert(expected.end(), plain.begin(), plain.end());
  expected.push_back(1);
  EXPECT_EQ(tokenizer->encode("A man <extra_id_0> A man", {.add_ending = true}), expected);
  EXPECT_EQ(tokenizer->decode(plain, {.special_tokens = false}), "A man");

  const auto saved = testing::new_directory("t5_saved");
  tokenizer->save(saved);
  const auto again = load_tokenizer(saved);
  EXPECT_EQ(again->content_key(), tokenizer->content_key());
  EXPECT_EQ(again->encode("A man <extra_id_0>"), tokenizer->encode("A man <extra_id_0>"));
}

TEST(T5Tokenizer, HasAHundredExtraTokensIfNothingSaysOtherwise) {
  EXPECT_EQ(load_tokenizer(t5_directory(""))->find_added_token("<extra_id_99>"), 600);
}

TEST(T5Tokenizer, TakesListedTokens) {
  const auto directory = t5_directory(
      R"({"extra_ids": 0, "added_tokens_decoder": {"600": {"content": "<sep>", "special": false}}})");
  EXPECT_EQ(load_tokenizer(directory)->encode("<sep>"), std::vector<std::int32_t>{600});
}

TEST(T5Tokenizer, NamesWhatIsWrong) {
  const auto message = [](const std::string& config) -> std::string {
    try {
      load_tokenizer(t5_directory(config));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(R"({"extra_ids": -1})"), HasSubstr("extra_ids"));
  EXPECT_THAT(message(R"({"eos_token": "<end>"})"), HasSubstr("'<end>'"));
  EXPECT_THAT(message(R"({"tokenizer_class": "AlbertTokenizer"})"), HasSubstr("'AlbertTokenizer'"));
  EXPECT_THAT(message(R"({"added_tokens_decoder": {"5": {"content": "<sep>"}}})"),
              HasSubstr("'<sep>'"));
  EXPECT_THAT(message(R"({"added_tokens_decoder": {"x": {"content": "<sep>"}}})"),
              HasSubstr("'x'"));
  EXPECT_THAT(message(R"({"added_tokens_decoder": {"999999999": {"content": "<sep>"}}})"),
              HasSubstr("999999999"));
}

TEST(MarianTokenizers, TakeTheIdsOfTheVocabulary) {
  const auto [source, target] = load_translation_tokenizers(marian_directory({}));
  // As marian_directory() numbers them: </s>, <unk>, >>de<<, the pieces of both, <pad>.
  EXPECT_EQ(source->end_of_text(), 0);
  EXPECT_EQ(source->unknown(), 1);
  EXPECT_EQ(source->padding(), source->vocabulary_size() - 1);
  EXPECT_EQ(source->vocabulary_size(), target->vocabulary_size());
  const auto model = load_tokenizer(sentence_piece_goldens() / "unigram.model");
  const auto pieces = model->encode("A man in a blue shirt");
  const auto ids = source->encode(">>de<< A man in a blue shirt", {.add_ending = true});
  ASSERT_EQ(ids.size(), pieces.size() + 2);
  EXPECT_EQ(ids.front(), 2);
  EXPECT_EQ(ids.back(), 0);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(source->token_bytes(ids[i + 1]), model->token_bytes(pieces[i]));
  }
  EXPECT_EQ(target->decode(target->encode("Ein Mann"), {.special_tokens = false}), "Ein Mann");
  EXPECT_THAT(source->text_template().after, ElementsAre(0));
  EXPECT_EQ(load_tokenizer(marian_directory({}))->content_key(), source->content_key());
}

// The source's model does not know the character, but the shared vocabulary does.
TEST(MarianTokenizers, FindUnknownPiecesInTheVocabulary) {
  const auto [source, target] = load_translation_tokenizers(marian_directory({.extra = "注"}));
  const auto ids = source->encode("注");
  EXPECT_EQ(source->token_bytes(ids.back()), "注");
  EXPECT_EQ(source->encode("意").back(), source->unknown());
}

TEST(MarianTokenizers, MayHaveVocabulariesOfTheirOwn) {
  const auto [source, target] = load_translation_tokenizers(marian_directory({.separate = true}));
  EXPECT_NE(source->vocabulary_size(), target->vocabulary_size());
  EXPECT_EQ(target->decode(target->encode("Ein Mann"), {.special_tokens = false}), "Ein Mann");
}

TEST(MarianTokenizers, AreSavedTogether) {
  const auto [source, target] = load_translation_tokenizers(marian_directory({.separate = true}));
  const auto saved = testing::new_directory("marian_saved");
  target->save(saved);
  const auto [source_again, target_again] = load_translation_tokenizers(saved);
  EXPECT_EQ(source_again->encode("A man"), source->encode("A man"));
  EXPECT_EQ(target_again->encode("Ein Mann"), target->encode("Ein Mann"));
}

TEST(MarianTokenizers, NameTheMissingFile) {
  for (const char* name : {"target.spm", "vocab.json"}) {
    const auto directory = marian_directory({});
    std::filesystem::remove(directory / name);
    try {
      load_translation_tokenizers(directory);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  }
}

TEST(TranslationTokenizers, AreOneElsewhere) {
  const auto [source, target] = load_translation_tokenizers(t5_directory(""));
  EXPECT_EQ(source.get(), target.get());
}

}  // namespace
}  // namespace heed
