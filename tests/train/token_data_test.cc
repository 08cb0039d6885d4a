#include "train/token_data.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/expect_error.h"
#include "base/temporary_directory.h"
#include "tokenizer/train_byte_pair.h"

namespace heed {
namespace {

using testing::TemporaryDirectory;

std::unique_ptr<BytePairTokenizer> small_tokenizer() {
  const std::string_view text = "the cat sat on the mat and the hat";
  return train_byte_pair_tokenizer(std::span(&text, 1), {.vocabulary_size = 270});
}

std::vector<std::int32_t> read_all(const TokenData& data) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(data.size()));
  data.read(0, tokens);
  return tokens;
}

TEST(TokenFile, RoundTripsNarrowAndWide) {
  const TemporaryDirectory directory;
  const std::vector<std::int32_t> tokens{0, 5, 65535, 7};
  for (const std::int64_t vocabulary : {65536, 100000}) {
    write_token_file(directory / "tokens.bin", tokens, vocabulary);
    const TokenFile file(directory / "tokens.bin");
    ASSERT_EQ(file.size(), 4);
    std::vector<std::int32_t> part(2);
    file.read(1, part);
    EXPECT_EQ(part, (std::vector<std::int32_t>{5, 65535}));
  }
}

TEST(TokenFile, RefusesDamage) {
  const TemporaryDirectory directory;
  const std::vector<std::int32_t> tokens{1, 2, 3};
  write_token_file(directory / "tokens.bin", tokens, 100);
  std::filesystem::resize_file(directory / "tokens.bin", 1024 + 4);
  testing::expect_error(
      ErrorCode::corrupt_data, [&] { TokenFile(directory / "tokens.bin"); },
      "says it holds 3 tokens", "4 bytes");
  std::filesystem::resize_file(directory / "tokens.bin", 10);
  testing::expect_error(
      ErrorCode::corrupt_data, [&] { TokenFile(directory / "tokens.bin"); }, "10 bytes");
}

TEST(TokenData, EncodesTextsWithAMarkBetweenThem) {
  const TemporaryDirectory directory;
  const auto tokenizer = small_tokenizer();
  const TokenData data = tokenize_texts(*tokenizer, {"the cat", "the mat<|endoftext|>", "hat"},
                                        {.cache = directory / "cache"});
  std::vector<std::int32_t> expected = tokenizer->encode("the cat");
  expected.push_back(*tokenizer->end_of_text());
  for (const char* text : {"the mat<|endoftext|>", "hat"}) {
    const auto tokens = tokenizer->encode(text);
    expected.insert(expected.end(), tokens.begin(), tokens.end());
  }
  EXPECT_EQ(read_all(data), expected);
}

TEST(TokenData, IsCachedByContent) {
  const TemporaryDirectory directory;
  const auto tokenizer = small_tokenizer();
  const auto count_calls = [&](const char* text) {
    int calls = 0;
    tokenize_texts(*tokenizer, {text},
                   {.cache = directory / "cache", .progress = [&](const Progress&) { ++calls; }});
    return calls;
  };
  EXPECT_EQ(count_calls("the cat sat"), 1);
  EXPECT_EQ(count_calls("the cat sat"), 0);
  EXPECT_EQ(count_calls("the cat sit"), 1);
  // A damaged cache is made again.
  for (const auto& file : std::filesystem::directory_iterator(directory / "cache")) {
    if (file.path().extension() == ".bin") std::filesystem::resize_file(file.path(), 3);
  }
  EXPECT_EQ(count_calls("the cat sat"), 1);
}

TEST(SplitTexts, CutsBetweenCharactersOrDocuments) {
  const SplitTexts plain = split_texts({"abcdefgh\xC3\xA9"}, 0.1);
  EXPECT_EQ(plain.training, Texts{"abcdefgh\xC3\xA9"});  // never inside a character
  EXPECT_TRUE(plain.validation.empty());
  const SplitTexts tenth = split_texts({"0123456789"}, 0.1);
  EXPECT_EQ(tenth.training, Texts{"012345678"});
  EXPECT_EQ(tenth.validation, Texts{"9"});
  const SplitTexts documents = split_texts({"one<|endoftext|>two<|endoftext|>"}, 0.7);
  EXPECT_EQ(documents.training, Texts{"one<|endoftext|>two<|endoftext|>"});
  const SplitTexts files = split_texts({"aaaa", "bbbb"}, 0.5);
  EXPECT_EQ(files.training, Texts{"aaaa"});
  EXPECT_EQ(files.validation, Texts{"bbbb"});
}

}  // namespace
}  // namespace heed
