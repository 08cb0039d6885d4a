// Compares with what SentencePiece's own Python package made: see
// tests/golden/sentence_piece/make_goldens.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const auto unigram = load_tokenizer(sentence_piece_goldens() / "unigram.model");
  const auto bpe = load_tokenizer(sentence_piece_goldens() / "bpe.model");
  EXPECT_EQ(unigram->vocabulary_size(), 600);
  EXPECT_EQ(bpe->vocabulary_size(), 800);
  std::size_t tokens = 0;
  for (const GoldenText& golden : golden_texts()) {
    const Tokenizer& tokenizer = golden.model == "bpe" ? *bpe : *unigram;
    // The library knows no special tokens in texts.
    const auto ids = tokenizer.encode(golden.text, {.special_tokens = false});
    ASSERT_EQ(ids, golden.ids) << golden.model << ": " << printable(golden.text);
    ASSERT_EQ(tokenizer.decode(ids, {.special_tokens = false}), golden.decoded)
        << golden.model << ": " << printable(golden.text);
    tokens += ids.size();
  }
  EXPECT_GT(tokens, 3000u);
}

TEST(SentencePiece, SpansCoverTheText) {
  for (const char* name : {"unigram.model", "bpe.model"}) {
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
