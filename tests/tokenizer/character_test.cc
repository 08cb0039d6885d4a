#include "tokenizer/character_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "tokenizer/test_data.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<CharacterTokenizer> train(std::string_view text,
                                          const CharacterTrainingOptions& options = {}) {
  return train_character_tokenizer(std::vector<std::string_view>{text}, options);
}

TEST(Character, SortsTheCharactersOfTheText) {
  const auto tokenizer = train("hello\nå 語!");
  EXPECT_EQ(tokenizer->kind(), TokenizerKind::character);
  EXPECT_EQ(tokenizer->vocabulary_size(), 9);
  EXPECT_THAT(tokenizer->encode("\n !ehloå語"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("hello 語å\n")), "hello 語å\n");
  EXPECT_EQ(tokenizer->end_of_text(), std::nullopt);
}

TEST(Character, NamesTheUnknownCharacterAndItsPlace) {
  const auto tokenizer = train("abcå");
  const auto message = [&](std::string_view text) -> std::string {
    try {
      tokenizer->encode(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "encoded";
  };
  EXPECT_THAT(message("abå語"), AllOf(HasSubstr("'語'"), HasSubstr("U+8A9E"), HasSubstr("byte 4")));
  EXPECT_THAT(message("abx"), AllOf(HasSubstr("'x'"), HasSubstr("byte 2")));
  EXPECT_THAT(message("\xC3"), AllOf(HasSubstr("'\\xC3'"), HasSubstr("byte 0")));
}

TEST(Character, GivesOffsets) {
  const auto tokenizer = train("aå");
  EXPECT_THAT(tokenizer->encode_with_offsets("aåa"),
              ElementsAre(TokenSpan{0, 0, 1}, TokenSpan{1, 1, 3}, TokenSpan{0, 3, 4}));
}

TEST(Character, KnowsSpecialTokensIfAsked) {
  const auto tokenizer = train("ab<|endoftext|>", {.special_tokens = {"<|endoftext|>"}});
  EXPECT_EQ(tokenizer->vocabulary_size(), 3);
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  EXPECT_THAT(tokenizer->encode("a<|endoftext|>b"), ElementsAre(0, 2, 1));
  EXPECT_THROW(tokenizer->encode("a<|endoftext|>", {.special_tokens = false}), Error);
}

TEST(Character, IsTheSameAfterSaving) {
  const auto tokenizer = train("ab\"\\\n\t語\u0001", {.special_tokens = {"<|endoftext|>"}});
  const auto directory = testing::new_directory("character_tokenizer");
  tokenizer->save(directory);
  for (const auto& path : {directory, directory / "tokenizer.json"}) {
    const auto again = load_tokenizer(path);
    EXPECT_EQ(again->kind(), TokenizerKind::character);
    EXPECT_EQ(again->to_json(), tokenizer->to_json());
    EXPECT_EQ(again->encode("語<|endoftext|>\"\\"), tokenizer->encode("語<|endoftext|>\"\\"));
  }
}

TEST(Character, RefusesTextsThatHaveNoCharacters) {
  EXPECT_THROW(train(""), Error);
  EXPECT_THROW(train("ab\xFF"), Error);
  EXPECT_THROW(train("ab", {.special_tokens = {"<a>", "<a>"}}), Error);
  EXPECT_THROW(train("ab", {.special_tokens = {""}}), Error);
}

TEST(Character, HasThe65CharactersOfShakespeare) {
  HEED_NEEDS_DATA("tinyshakespeare.txt");
  const std::string text = read_text_file(test_data() / "tinyshakespeare.txt");
  const auto tokenizer = train(text);
  EXPECT_EQ(tokenizer->vocabulary_size(), 65);
  // nanoGPT's numbers: "\n !$&',-.3:;?ABC...xyz", so 'F' is 18 and 'z' 64.
  EXPECT_THAT(tokenizer->encode("First\nz"), ElementsAre(18, 47, 56, 57, 58, 0, 64));
  const auto ids = tokenizer->encode(text);
  EXPECT_EQ(ids.size(), 1115394u);
  EXPECT_EQ(tokenizer->decode(ids), text);
}

}  // namespace
}  // namespace heed
