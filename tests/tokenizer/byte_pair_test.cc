#include "tokenizer/byte_pair_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/threads.h"
#include "tokenizer/small_tokenizer.h"
#include "tokenizer/test_data.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

using ::testing::ElementsAre;

std::string random_bytes(RandomStream& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  return bytes;
}

TEST(ByteLetters, AreGpt2s) {
  EXPECT_EQ(bytes_to_letters(" a\n\x7F\xAD"), "ĠaĊġŃ");
  EXPECT_EQ(byte_letters()[0x21], U'!');
  EXPECT_EQ(byte_letters()[0x00], U'\u0100');
  EXPECT_EQ(bytes_by_letter()[0], '!');
  EXPECT_EQ(bytes_by_letter()[220], ' ');
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(letters_to_bytes(bytes_to_letters(all)), all);
  EXPECT_EQ(letters_to_bytes("a b"), std::nullopt);
  EXPECT_EQ(letters_to_bytes("日"), std::nullopt);
}

// The definition, word by word: merge the leftmost of the best-ranked pairs until none is left.
std::vector<std::int32_t> merge_naively(const BytePairTokenizer& tokenizer, std::string_view word) {
  std::vector<std::int32_t> ids;
  for (const char byte : word) {
    for (std::int32_t id = 0; id < 256; ++id) {
      if (tokenizer.token_bytes(id)[0] == byte) ids.push_back(id);
    }
  }
  for (;;) {
    std::size_t best_rank = tokenizer.merges().size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        const MergeRule& merge = tokenizer.merges()[rank];
        if (merge.left == ids[i] && merge.right == ids[i + 1]) {
          best_rank = rank;
          best = i;
        }
      }
    }
    if (best_rank == tokenizer.merges().size()) return ids;
    ids[best] = tokenizer.merges()[best_rank].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(BytePair, MergesShortAndLongWordsAlike) {
  const std::vector<std::string_view> texts = {"aaaa aaa aaaaaa abab ababab abba baab aab bba"};
  const auto tokenizer = train_byte_pair_tokenizer(texts, {.vocabulary_size = 275});
  RandomStream random(2, 0);
  for (const int size : {1, 2, 3, 10, 50, 95, 96, 97, 98, 150, 300}) {
    for (int round = 0; round < 20; ++round) {
      std::string word;
      for (int i = 0; i < size; ++i) word.push_back("ab"[random.below(round % 4 == 0 ? 1 : 2)]);
      ASSERT_EQ(tokenizer->encode(word), merge_naively(*tokenizer, word)) << word;
    }
  }
}

TEST(BytePair, RoundTripsEveryByteString) {
  const auto tokenizer = small_tokenizer();
  RandomStream random(3, 0);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_bytes(random, random.below(200));
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  EXPECT_TRUE(tokenizer->encode("").empty());
  EXPECT_EQ(tokenizer->decode({}), "");
}

TEST(BytePair, GivesOffsetsThatCoverTheText) {
  const auto tokenizer = small_tokenizer();
  const std::string text = "the cat<|endoftext|>\xFF 注意";
  std::size_t end = 0;
  std::vector<std::int32_t> ids;
  for (const TokenSpan& span : tokenizer->encode_with_offsets(text)) {
    EXPECT_EQ(span.begin, end);
    EXPECT_EQ(tokenizer->token_bytes(span.id), text.substr(span.begin, span.end - span.begin));
    end = span.end;
    ids.push_back(span.id);
  }
  EXPECT_EQ(end, text.size());
  EXPECT_EQ(ids, tokenizer->encode(text));
}

TEST(BytePair, ReadsSpecialTokensOnlyWhenAsked) {
  const auto tokenizer = small_tokenizer();
  const std::int32_t end = tokenizer->end_of_text().value();
  EXPECT_EQ(end, tokenizer->vocabulary_size() - 1);
  EXPECT_THAT(tokenizer->encode("<|endoftext|><|endoftext|>"), ElementsAre(end, end));
  const auto plain = tokenizer->encode("<|endoftext|>", {.special_tokens = false});
  EXPECT_EQ(std::count(plain.begin(), plain.end(), end), 0);
  EXPECT_EQ(tokenizer->decode(plain), "<|endoftext|>");
  // The text before a special token ends there: its spaces are one word.
  EXPECT_EQ(tokenizer->encode("the  <|endoftext|>").size(), tokenizer->encode("the  ").size() + 1);
}

TEST(AddedTokens, AreMatchedLeftmostThenLongest) {
  const AddedTokenMatcher matcher({{.id = 1, .content = "<a>"},
                                   {.id = 2, .content = "<a><b>"},
                                   {.id = 3, .content = "b><"},
                                   {.id = 4, .content = "x"}});
  std::vector<std::int32_t> ids;
  for (const auto& match : matcher.find_all("x<a><a><b><a>b><<a")) ids.push_back(match.id);
  EXPECT_THAT(ids, ElementsAre(4, 1, 2, 1, 3));
  EXPECT_TRUE(AddedTokenMatcher().find_all("<a>").empty());
}

TEST(BytePair, NamesTheIdThatIsOutOfRange) {
  const auto tokenizer = small_tokenizer();
  for (const std::int32_t id : {-1, tokenizer->vocabulary_size()}) {
    try {
      tokenizer->decode(std::vector<std::int32_t>{0, id});
      FAIL() << "decoded " << id;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(std::to_string(id)));
      EXPECT_THAT(error.what(), ::testing::HasSubstr(std::to_string(tokenizer->vocabulary_size())));
    }
    EXPECT_THROW(tokenizer->token_text(id), Error);
  }
}

TEST(BytePair, EncodesAlikeOnAnyNumberOfThreads) {
  const auto tokenizer = small_tokenizer();
  RandomStream random(4, 0);
  const std::vector<std::string> parts = {"the cat ", "<|endoftext|>", "  ", "\n\n", "注意力",
                                          "\u00A0",   "aaaaaaaa",      "<|", "\xFF", "'s "};
  std::string text;
  while (text.size() < 1'000'000) text += parts[random.below(parts.size())];
  text += std::string(400'000, 'a') + std::string(400'000, ' ') + "end";
  const int before = thread_count();
  set_thread_count(1);
  const auto serial = tokenizer->encode(text);
  const auto short_pieces = [&] {  // each line alone, so that no text is cut
    std::vector<std::int32_t> ids;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t found = text.find("<|endoftext|>", begin);
      const std::size_t end = std::min(found, text.size());
      const auto part = tokenizer->encode(std::string_view(text).substr(begin, end - begin));
      ids.insert(ids.end(), part.begin(), part.end());
      if (found == std::string::npos) break;
      ids.push_back(*tokenizer->end_of_text());
      begin = found + 13;
    }
    return ids;
  }();
  EXPECT_EQ(serial, short_pieces);
  for (const int threads : {2, 3, 8}) {
    set_thread_count(threads);
    EXPECT_EQ(tokenizer->encode(text), serial) << threads << " threads";
  }
  set_thread_count(before);
}

TEST(BytePair, TakesLongRunsInStride) {
  const auto tokenizer = small_tokenizer();
  for (const char* unit : {"a", "the", " ", "1", "\xFF", "語"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(BytePair, WritesTokensForPeople) {
  const auto tokenizer = small_tokenizer();
  const auto text_of = [&](std::string_view text) {
    return tokenizer->token_text(tokenizer->encode(text).at(0));
  };
  EXPECT_EQ(text_of("\n"), "\\n");
  EXPECT_EQ(text_of("\xFF"), "\\xFF");
  EXPECT_EQ(text_of("\\"), "\\\\");
  EXPECT_EQ(text_of(" the"), " the");
}

TEST(Gpt2, TokenizesAsPublished) {
  HEED_NEEDS_DATA("gpt2");
  const auto tokenizer = load_tokenizer(test_data() / "gpt2");
  EXPECT_EQ(tokenizer->vocabulary_size(), 50257);
  EXPECT_EQ(tokenizer->end_of_text(), 50256);
  EXPECT_THAT(tokenizer->encode("Hello, world!"), ElementsAre(15496, 11, 995, 0));
  EXPECT_THAT(tokenizer->encode("Hello <|endoftext|> world"), ElementsAre(15496, 220, 50256, 995));
  EXPECT_EQ(tokenizer->token_text(995), " world");
}

TEST(Gpt2, RoundTripsRandomBytes) {
  HEED_NEEDS_DATA("gpt2");
  const auto tokenizer = load_tokenizer(test_data() / "gpt2");
  RandomStream random(5, 0);
  const std::string text = random_bytes(random, 2'000'000);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(Gpt2, IsTheSameAfterSaving) {
  HEED_NEEDS_DATA("gpt2");
  const auto tokenizer = load_tokenizer(test_data() / "gpt2");
  const auto again = parse_tokenizer_json(tokenizer->to_json(), "saved");
  EXPECT_EQ(again->content_key(), tokenizer->content_key());
  HEED_NEEDS_DATA("tinyshakespeare.txt");
  const std::string text = read_text_file(test_data() / "tinyshakespeare.txt");
  const auto ids = tokenizer->encode(text);
  EXPECT_EQ(ids.size(), 338025u);  // nanoGPT's count: 301,966 to train and 36,059 to validate
  EXPECT_EQ(again->encode(text), ids);
}

}  // namespace
}  // namespace heed
