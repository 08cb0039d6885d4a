#include "train/pair_data.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/expect_error.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/train_byte_pair.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::TemporaryDirectory;

class PairTextTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& text) const {
    write_text_file(directory_ / name, text);
    return directory_ / name;
  }
  TemporaryDirectory directory_;
};

TEST_F(PairTextTest, ReadsTwoFilesOrOne) {
  const auto english = file("a.en", "a dog\r\nthe cat\nno");
  const auto german = file("a.de", "ein Hund\ndie Katze\nnein\n");
  const auto both = file("a.tsv", "a dog\tein Hund\nthe cat\tdie Katze\nno\tnein\n");
  const PairText two({english, german});
  const PairText one({both});
  for (const PairText* text : {&two, &one}) {
    ASSERT_EQ(text->size(), 3);
    EXPECT_EQ(text->line(PairSide::source, 0), "a dog");
    EXPECT_EQ(text->line(PairSide::target, 1), "die Katze");
    EXPECT_EQ(text->line(PairSide::source, 2), "no");
    EXPECT_EQ(text->line(PairSide::target, 2), "nein");
  }
  EXPECT_NE(two.place(PairSide::target, 1).find("a.de', line 2"), std::string::npos);
}

// As other systems write them.
TEST_F(PairTextTest, ReadsTheSameWithReturnsAndMarks) {
  const std::string mark = "\xEF\xBB\xBF";
  const PairText plain({file("a.en", "a dog\nthe cat\n"), file("a.de", "ein Hund\ndie Katze\n")});
  const PairText returned(
      {file("b.en", mark + "a dog\r\nthe cat\r\n"), file("b.de", mark + "ein Hund\r\ndie Katze")});
  const PairText columns({file("c.tsv", mark + "a dog\tein Hund\r\nthe cat\tdie Katze\r\n")});
  for (const PairText* text : {&returned, &columns}) {
    EXPECT_EQ(text->both_sides(0, 2), plain.both_sides(0, 2));
  }
  EXPECT_EQ(plain.both_sides(1, 2), (std::vector<std::string_view>{"the cat", "die Katze"}));
}

TEST_F(PairTextTest, ReadsCompressedFiles) {
  file("a.en", "a dog\nthe cat\n");
  const std::string command = "gzip -k '" + (directory_ / "a.en").string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const PairText text({directory_ / "a.en.gz", file("a.de", "ein Hund\ndie Katze\n")});
  EXPECT_EQ(text.line(PairSide::source, 1), "the cat");
}

TEST_F(PairTextTest, NamesFileAndLineOfWhatIsWrong) {
  const auto english = file("a.en", "a dog\nthe cat\nno\n");
  const auto refused = [&](const std::vector<std::filesystem::path>& files, const auto&... parts) {
    expect_error(
        ErrorCode::invalid_argument, [&] { PairText text(files); }, parts...);
  };
  refused({english, file("short.de", "ein Hund\ndie Katze\n")}, "a.en' has 3 lines",
          "short.de' has 2");
  refused({english, file("empty.de", "ein Hund\n \nnein\n")}, "empty.de', line 2",
          "the target is empty");
  refused({file("empty.en", "a dog\nthe cat\n\n"), english}, "empty.en', line 3",
          "the source is empty");
  refused({english, file("latin.de", "ein Hund\ndie Katze\nsch\xF6n\n")}, "latin.de', line 3",
          "not UTF-8", "\\xF6");
  refused({file("a.tsv", "a dog\tein Hund\nthe cat\n")}, "a.tsv', line 2", "0 tabs");
  refused({file("b.tsv", "a dog\tein Hund\textra\n")}, "b.tsv', line 1", "2 tabs");
  refused({file("c.tsv", "\tein Hund\n")}, "c.tsv', line 1", "the source is empty");
  refused({file("none.en", ""), file("none.de", "")}, "no lines");
  refused({english, english, english}, "3 files");
  expect_error(
      ErrorCode::not_found,
      [&] {
        PairText text({english, directory_ / "absent.de"});
      },
      "absent.de");
}

// A tokenizer that puts tokens around every text puts them around lines too, as BART's does.
TEST_F(PairTextTest, LinesBeginAsTheTokenizersTextsDo) {
  const PairText text({file("a.en", "a dog\nthe cat\n"), file("a.de", "ein Hund\ndie Katze\n")});
  const auto plain =
      learn_joint_vocabulary(text.both_sides(0, text.size()), {.vocabulary_size = 280});
  Json document = Json::parse(plain->to_json());
  document["post_processor"] = {{"type", "RobertaProcessing"},
                                {"cls", {"<s>", *plain->start()}},
                                {"sep", {"</s>", *plain->end_of_text()}}};
  const std::shared_ptr<const Tokenizer> tokenizer =
      parse_tokenizer_json(document.dump(), "tokenizer.json");
  const TokenizeOptions options{.cache = directory_ / "cache"};
  const std::shared_ptr<const Tokenizer> other = parse_tokenizer_json(plain->to_json(), "plain");
  const PairData without(text, {0, 2}, {other, other}, options);
  const PairData data(text, {0, 2}, {tokenizer, tokenizer}, options);
  for (const PairSide side : {PairSide::source, PairSide::target}) {
    for (std::int64_t pair = 0; pair < 2; ++pair) {
      std::vector<std::int32_t> read(static_cast<std::size_t>(data.length(side, pair)));
      data.read(side, pair, read);
      EXPECT_EQ(read, tokenizer->encode(text.line(side, pair),
                                        {.add_beginning = true, .add_ending = true}));
      EXPECT_EQ(read.front(), *plain->start());
      EXPECT_EQ(without.length(side, pair), data.length(side, pair) - 1);
    }
  }
}

TEST_F(PairTextTest, BecomesTokensOfEachLine) {
  const PairText text({file("a.en", "a dog </s> barks\nthe cat\nno dog\n"),
                       file("a.de", "ein Hund bellt\ndie Katze\nkein Hund\n")});
  const std::shared_ptr<const Tokenizer> tokenizer =
      learn_joint_vocabulary(text.both_sides(0, text.size()), {.vocabulary_size = 280});
  const TranslationTokenizers tokenizers{.source = tokenizer, .target = tokenizer};
  const auto check_tokens = [&](const TokenizeOptions& options) {
    const PairData data(text, {1, 3}, tokenizers, options);
    const PairData whole(text, {0, 3}, tokenizers, options);
    EXPECT_EQ(data.size(), 2);
    EXPECT_NE(data.key(), whole.key());
    // A mark inside a line is text, and ends nothing.
    EXPECT_EQ(whole.size(), 3);
    for (const PairSide side : {PairSide::source, PairSide::target}) {
      for (std::int64_t pair = 0; pair < 2; ++pair) {
        std::vector<std::int32_t> expected = tokenizer->encode(text.line(side, pair + 1));
        expected.push_back(*tokenizer->end_of_text());
        std::vector<std::int32_t> read(static_cast<std::size_t>(data.length(side, pair)));
        data.read(side, pair, read);
        EXPECT_EQ(read, expected);
      }
    }
    return data.key();
  };
  const std::string in_memory = check_tokens({});
  EXPECT_EQ(check_tokens({.cache = directory_ / "cache"}), in_memory);
  EXPECT_FALSE(std::filesystem::is_empty(directory_ / "cache"));
  EXPECT_EQ(check_tokens({.cache = directory_ / "cache"}), in_memory);

  const PairData whole(text, {1, 3}, tokenizers, {});
  const std::int64_t longest =
      std::max(whole.length(PairSide::target, 0), whole.length(PairSide::target, 1));
  whole.require_lengths(PairSide::target, longest, "the context");
  expect_error(
      ErrorCode::invalid_argument,
      [&] { whole.require_lengths(PairSide::target, longest - 1, "the context"); }, "a.de', line ",
      std::to_string(longest) + " tokens", "the context allows " + std::to_string(longest - 1));
}

}  // namespace
}  // namespace heed
