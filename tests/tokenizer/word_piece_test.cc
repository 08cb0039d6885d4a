#include "tokenizer/word_piece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "tokenizer/small_published.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

std::unique_ptr<Tokenizer> word_pieces(const std::function<void(Json&)>& change = {}) {
  Json document = small_word_piece_document();
  if (change) change(document);
  return parse_tokenizer_json(document.dump(), "file.json");
}

std::string word_piece_refusal(const std::function<void(Json&)>& change, ErrorCode code) {
  try {
    word_pieces(change);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "not refused";
}

// 5 the, 6 cat, 7 sat, 8 un, 9 ##able, 10 ##s, 11 ##a, 12 ##ffa, 13 ##ff, 14 a, 15 , 16 . 17 ' 18 s
// 19 注, 20 eleve, 21 ##d
TEST(WordPiece, TakesTheLongestTokens) {
  const auto tokenizer = word_pieces();
  EXPECT_EQ(tokenizer->kind(), TokenizerKind::word_piece);
  EXPECT_EQ(tokenizer->encode("the cats, unaffable"), (Ids{5, 6, 10, 15, 1}));
  EXPECT_EQ(tokenizer->encode("unaffas unaffs"), (Ids{8, 11, 12, 10, 8, 11, 13, 10}));
  EXPECT_EQ(tokenizer->encode("unffas unable"), (Ids{8, 12, 10, 8, 9}));
}

TEST(WordPiece, MakesAWordUnknownAsAWhole) {
  const auto tokenizer = word_pieces();
  EXPECT_EQ(tokenizer->encode("cat catx cat"), (Ids{6, 1, 6}));
  EXPECT_EQ(tokenizer->encode(std::string(100, 'a')).size(), 100u);
  EXPECT_EQ(tokenizer->encode(std::string(101, 'a')), Ids{1});
  EXPECT_EQ(tokenizer->unknown(), 1);
}

TEST(WordPiece, NormalisesAsBertDoes) {
  const auto tokenizer = word_pieces();
  EXPECT_EQ(tokenizer->encode("THE \u00C9l\u00E8ve\u0301d"), (Ids{5, 20, 21}));
  EXPECT_EQ(tokenizer->encode("cat\u6CE8sat"), (Ids{6, 19, 7}));        // ideographs are words
  EXPECT_EQ(tokenizer->encode("c\u200Dat\u00A0sat\x01"), (Ids{6, 7}));  // control characters go
  const auto cased = word_pieces([](Json& d) { d["normalizer"]["lowercase"] = false; });
  EXPECT_EQ(cased->encode("THE the \u00E9l\u00E8ve"), (Ids{1, 5, 1}));
}

TEST(WordPiece, SpansCoverTheText) {
  const auto tokenizer = word_pieces();
  const std::string text = "  The \u00C9l\u00E8ves.\n";
  EXPECT_THAT(tokenizer->encode_with_offsets(text),
              ElementsAre(TokenSpan{5, 0, 5}, TokenSpan{20, 5, 13}, TokenSpan{10, 13, 14},
                          TokenSpan{16, 14, 16}));
  EXPECT_TRUE(tokenizer->encode_with_offsets(" \n").empty());
}

TEST(WordPiece, FramesATextOnRequest) {
  const auto tokenizer = word_pieces();
  EXPECT_EQ(tokenizer->encode("the [MASK] sat", {.add_beginning = true, .add_ending = true}),
            (Ids{2, 5, 4, 7, 3}));
  EXPECT_EQ(tokenizer->padding(), 0);
  EXPECT_EQ(tokenizer->start(), 2);
  EXPECT_EQ(tokenizer->end_of_text(), 3);
  EXPECT_EQ(tokenizer->mask(), 4);
}

TEST(WordPiece, DecodesWordsWithSpaces) {
  const auto tokenizer = word_pieces();
  const Ids ids = tokenizer->encode("The cats' sat, the cat's un.",
                                    {.add_beginning = true, .add_ending = true});
  EXPECT_EQ(tokenizer->decode(ids, {.special_tokens = false}), "the cats ' sat, the cat ' s un.");
  EXPECT_EQ(tokenizer->decode(Ids{2, 5, 10}), "[CLS] thes");
  EXPECT_EQ(tokenizer->token_bytes(6), " cat");
  EXPECT_EQ(tokenizer->token_bytes(10), "s");
}

TEST(WordPiece, IsTheSameAfterSaving) {
  for (const bool lowercase : {true, false}) {
    const auto tokenizer = word_pieces([&](Json& d) { d["normalizer"]["lowercase"] = lowercase; });
    const auto again = parse_tokenizer_json(tokenizer->to_json(), "saved");
    EXPECT_EQ(again->content_key(), tokenizer->content_key());
    EXPECT_EQ(again->encode("The cats."), tokenizer->encode("The cats."));
  }
}

TEST(WordPiece, MayBeCutBeforeWhiteSpace) {
  const auto tokenizer = word_pieces();
  const std::string_view text = "the cat, sat";
  EXPECT_TRUE(tokenizer->may_cut(text, 3));
  EXPECT_FALSE(tokenizer->may_cut(text, 5));
}

TEST(WordPiece, ReadsVocabTxt) {
  const std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nThe\nthe\n##s\n";
  const auto plain = read_word_piece_lines(lines, {}, "vocab.txt");
  EXPECT_EQ(plain->encode("Thes", {.add_beginning = true, .add_ending = true}), (Ids{2, 6, 7, 3}));
  const auto cased =
      read_word_piece_lines(lines, TokenizerConfig::of({{"do_lower_case", false}}), "vocab.txt");
  EXPECT_EQ(cased->encode("Thes"), (Ids{5, 7}));

  const auto directory = testing::new_directory("bert_tokenizer");
  write_text_file(directory / "vocab.txt", lines);
  write_text_file(directory / "tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(load_tokenizer(directory)->encode("Thes [MASK]"), (Ids{5, 7, 4}));
  EXPECT_TRUE(holds_tokenizer(directory));
}

TEST(WordPiece, RefusesDamagedVocabTxt) {
  const auto read = [](const char* lines) { read_word_piece_lines(lines, {}, "vocab.txt"); };
  EXPECT_THROW(read(""), Error);
  EXPECT_THROW(read("[UNK]\n\nthe\n"), Error);
  EXPECT_THROW(read("[UNK]\nthe\nthe\n"), Error);
  EXPECT_THROW(read("[UNK]\n\xFF\n"), Error);
  EXPECT_THROW(read("the\n"), Error);
}

TEST(WordPiece, NamesWhatItCannotDo) {
  const auto unsupported = [](const std::function<void(Json&)>& change, const char* named) {
    EXPECT_THAT(word_piece_refusal(change, ErrorCode::unsupported),
                ::testing::AllOf(HasSubstr("file.json"), HasSubstr(named)));
  };
  unsupported([](Json& d) { d["normalizer"] = {{"type", "NFKC"}}; }, "NFKC");
  unsupported([](Json& d) { d["pre_tokenizer"] = {{"type", "Whitespace"}}; }, "Whitespace");
  unsupported([](Json& d) { d.erase("pre_tokenizer"); }, "BertPreTokenizer");
  unsupported([](Json& d) { d["decoder"] = {{"type", "Fuse"}}; }, "Fuse");
  unsupported([](Json& d) { d["decoder"]["prefix"] = "@@"; }, "prefix");
  unsupported(
      [](Json& d) {
        d["model"]["continuing_subword_prefix"] = "";
        d["decoder"].erase("prefix");
      },
      "continuing_subword_prefix");
}

TEST(WordPiece, NamesWhatIsDamaged) {
  const auto damaged = [](const std::function<void(Json&)>& change, const char* named) {
    EXPECT_THAT(word_piece_refusal(change, ErrorCode::corrupt_data),
                ::testing::AllOf(HasSubstr("file.json"), HasSubstr(named)));
  };
  damaged([](Json& d) { d["model"]["unk_token"] = "<none>"; }, "<none>");
  damaged([](Json& d) { d["model"]["max_input_chars_per_word"] = -1; }, "max_input_chars_per_word");
  damaged([](Json& d) { d["model"]["vocab"]["cat"] = 7; }, "sat");
  damaged(
      [](Json& d) {
        d["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"[SEP]"}}};
      },
      "cls");
  damaged(
      [](Json& d) {
        d["post_processor"] = Json::parse(
            R"({"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 9999]})");
      },
      "9999");
}

}  // namespace
}  // namespace heed
