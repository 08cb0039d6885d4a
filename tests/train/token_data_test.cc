#include "train/token_data.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/environment_variable.h"
#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "tokenizer/train_byte_pair.h"

namespace heed {
namespace {

using testing::EnvironmentVariable;
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
      ErrorCode::corrupt_data, [&] { TokenFile(directory / "tokens.bin"); }, "gives 3 tokens",
      "4 bytes");
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

TEST(TokenData, StaysInMemoryWithoutACache) {
  const TemporaryDirectory directory;
  const auto tokenizer = small_tokenizer();
  const TextViews texts{"the cat", "the hat"};
  const auto expected = read_all(tokenize_texts(*tokenizer, texts, {.cache = directory / "cache"}));
  std::ofstream(directory / "file") << "in the way";
  for (const std::filesystem::path& cache :
       {std::filesystem::path(), directory.path() / "file" / "cache"}) {
    std::vector<std::string> notices;
    const TokenData data = tokenize_texts(
        *tokenizer, texts,
        {.cache = cache, .notice = [&](const std::string& text) { notices.push_back(text); }});
    EXPECT_EQ(read_all(data), expected);
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_NE(notices.front().find("in memory"), std::string::npos) << notices.front();
  }
  EXPECT_EQ(directory.entries(), 2U);
}

// The directory can be made, but no file in it.
TEST(TokenData, StaysInMemoryWhenAShardCannotBeWritten) {
  const TemporaryDirectory directory;
  const auto tokenizer = small_tokenizer();
  const auto cached = tokenize_texts(*tokenizer, {"the cat"}, {.cache = directory / "cache"});
  std::filesystem::remove_all(directory / "cache");
  make_directory(directory.path() / "cache" / (cached.key() + "-00000.bin") / "in the way");
  std::string notice;
  const TokenData data = tokenize_texts(
      *tokenizer, {"the cat"},
      {.cache = directory / "cache", .notice = [&](const std::string& text) { notice = text; }});
  EXPECT_EQ(read_all(data), read_all(cached));
  EXPECT_NE(notice.find("-00000.bin"), std::string::npos) << notice;
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "cache" / (cached.key() + ".list")));
}

TEST(TokenData, CacheIsClearedOfWhatKilledProcessesLeft) {
  const TemporaryDirectory directory;
  make_directory(directory / "cache");
  std::ofstream(directory.path() / "cache" / "0123-00000.bin.partial-1-0") << "half";
  tokenize_texts(*small_tokenizer(), {"the cat"}, {.cache = directory / "cache"});
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "cache" / "0123-00000.bin.partial-1-0"));
}

TEST(TokenCache, IsNeverRelativeToWhereHeedRuns) {
  const EnvironmentVariable own("HEED_CACHE", nullptr);
  const EnvironmentVariable home("HOME", "/home/someone");
  {
    const EnvironmentVariable cache("XDG_CACHE_HOME", "/cache");
    EXPECT_EQ(default_token_cache(), "/cache/heed/tokens");
  }
  for (const char* ignored : {"relative", "", "./here"}) {
    const EnvironmentVariable cache("XDG_CACHE_HOME", ignored);
    EXPECT_EQ(default_token_cache(), "/home/someone/.cache/heed/tokens");
    const EnvironmentVariable nowhere("HOME", ignored);
    EXPECT_EQ(default_token_cache(), "");
  }
  const EnvironmentVariable chosen("HEED_CACHE", "mine");
  EXPECT_EQ(default_token_cache(), "mine/tokens");
}

TEST(SplitTexts, CutsBetweenCharactersOrDocuments) {
  const SplitTexts plain = split_texts({"abcdefgh\xC3\xA9"}, 0.1);
  EXPECT_EQ(plain.training, TextViews{"abcdefgh\xC3\xA9"});  // never inside a character
  EXPECT_TRUE(plain.validation.empty());
  const SplitTexts tenth = split_texts({"0123456789"}, 0.1);
  EXPECT_EQ(tenth.training, TextViews{"012345678"});
  EXPECT_EQ(tenth.validation, TextViews{"9"});
  const SplitTexts documents = split_texts({"one<|endoftext|>two<|endoftext|>"}, 0.7);
  EXPECT_EQ(documents.training, TextViews{"one<|endoftext|>two<|endoftext|>"});
  const SplitTexts files = split_texts({"aaaa", "bbbb"}, 0.5);
  EXPECT_EQ(files.training, TextViews{"aaaa"});
  EXPECT_EQ(files.validation, TextViews{"bbbb"});
}

}  // namespace
}  // namespace heed
