#include "tokenizer/train_byte_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "tokenizer/byte_pair_tokenizer.h"
#include "tokenizer/small_tokenizer.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

// The definition: count all pairs anew for each merge; take the most frequent, of equals the
// lowest.
std::vector<TokenPair> learn_naively(std::string_view text, int merges,
                                     std::int64_t min_frequency) {
  std::map<std::vector<std::int32_t>, std::int64_t> words;
  std::vector<std::string> tokens;
  std::array<std::int32_t, 256> id_of;
  for (int id = 0; id < 256; ++id) {
    id_of[bytes_by_letter()[id]] = id;
    tokens.emplace_back(1, static_cast<char>(bytes_by_letter()[id]));
  }
  for_each_word(text, [&](std::size_t begin, std::size_t end) {
    std::vector<std::int32_t> ids;
    for (std::size_t i = begin; i < end; ++i) {
      ids.push_back(id_of[static_cast<unsigned char>(text[i])]);
    }
    ++words[ids];
  });
  std::vector<TokenPair> learned;
  while (static_cast<int>(learned.size()) < merges) {
    std::map<TokenPair, std::int64_t> counts;
    for (const auto& [word, count] : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) counts[{word[i], word[i + 1]}] += count;
    }
    std::int64_t best = min_frequency - 1;
    TokenPair chosen;
    for (const auto& [pair, count] : counts) {
      const auto joined = tokens[pair.left] + tokens[pair.right];
      if (count > best && std::find(tokens.begin(), tokens.end(), joined) == tokens.end()) {
        best = count;
        chosen = pair;
      }
    }
    if (best < min_frequency) break;
    const auto id = static_cast<std::int32_t>(tokens.size());
    tokens.push_back(tokens[chosen.left] + tokens[chosen.right]);
    learned.push_back(chosen);
    std::map<std::vector<std::int32_t>, std::int64_t> merged_words;
    for (const auto& [word, count] : words) {
      std::vector<std::int32_t> merged;
      for (std::size_t i = 0; i < word.size(); ++i) {
        if (i + 1 < word.size() && word[i] == chosen.left && word[i + 1] == chosen.right) {
          merged.push_back(id);
          ++i;
        } else {
          merged.push_back(word[i]);
        }
      }
      merged_words[merged] += count;
    }
    words.swap(merged_words);
  }
  return learned;
}

std::vector<TokenPair> pairs_of(const BytePairTokenizer& tokenizer) {
  std::vector<TokenPair> pairs;
  for (const MergeRule& merge : tokenizer.merges()) pairs.push_back({merge.left, merge.right});
  return pairs;
}

TEST(Training, EqualsTheDefinition) {
  RandomStream random(6, 0);
  for (int round = 0; round < 60; ++round) {
    std::string text;
    for (int i = 0; i < 400; ++i) text.push_back("aaabbc  d"[random.below(round % 2 == 0 ? 9 : 6)]);
    const std::int64_t min_frequency = 1 + round % 3;
    const std::vector<std::string_view> texts = {text};
    const auto tokenizer = train_byte_pair_tokenizer(
        texts, {.vocabulary_size = 256 + 60, .special_tokens = {}, .min_frequency = min_frequency});
    ASSERT_EQ(pairs_of(*tokenizer), learn_naively(text, 60, min_frequency)) << text;
  }
}

TEST(Training, DoesNotDependOnTheNumberOfThreads) {
  RandomStream random(7, 0);
  std::string text;
  while (text.size() < 5'000'000) {
    for (std::uint64_t letters = 1 + random.below(7); letters > 0; --letters) {
      text.push_back(static_cast<char>('a' + random.below(6)));
    }
    text += random.below(50) == 0 ? "<|endoftext|>" : " ";
  }
  const std::vector<std::string_view> texts = {text, small_text};
  const int before = thread_count();
  std::string first;
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    const auto tokenizer = train_byte_pair_tokenizer(texts, {.vocabulary_size = 600});
    EXPECT_EQ(tokenizer->vocabulary_size(), 600);
    if (first.empty()) first = tokenizer->to_json();
    EXPECT_EQ(tokenizer->to_json(), first) << threads << " threads";
  }
  set_thread_count(before);
}

TEST(Training, OrdersIdsAsGpt2Does) {
  const std::vector<std::string_view> texts = {small_text};
  const auto tokenizer = train_byte_pair_tokenizer(
      texts, {.vocabulary_size = 280, .special_tokens = {"<|endoftext|>", "<|pad|>"}});
  EXPECT_EQ(tokenizer->vocabulary_size(), 280);
  EXPECT_EQ(tokenizer->token_bytes(0), "!");
  EXPECT_EQ(tokenizer->token_bytes(220), " ");
  EXPECT_EQ(tokenizer->token_bytes(278), "<|endoftext|>");
  EXPECT_EQ(tokenizer->token_bytes(279), "<|pad|>");
  for (std::size_t rank = 0; rank < tokenizer->merges().size(); ++rank) {
    EXPECT_EQ(tokenizer->merges()[rank].result, 256 + static_cast<std::int32_t>(rank));
  }
}

TEST(Training, CutsSpecialTokensFromTheText) {
  std::string repeated;
  for (int i = 0; i < 100; ++i) repeated += "<|endoftext|>ab";
  const std::vector<std::string_view> texts = {repeated};
  const auto tokenizer = train_byte_pair_tokenizer(texts, {.vocabulary_size = 400});
  EXPECT_EQ(tokenizer->merges().size(), 1u);  // a b
}

TEST(Training, EndsWhenNoPairIsLeft) {
  const std::vector<std::string_view> texts = {"ab ab"};
  const auto tokenizer =
      train_byte_pair_tokenizer(texts, {.vocabulary_size = 50257, .min_frequency = 1});
  EXPECT_EQ(tokenizer->vocabulary_size(), 256 + 2 + 1);  // ab, and a space with it
  const auto empty = train_byte_pair_tokenizer(std::vector<std::string_view>{}, {});
  EXPECT_EQ(empty->vocabulary_size(), 257);
}

TEST(Training, NeverLearnsASpecialToken) {
  const std::vector<std::string_view> texts = {"Ã Ã Ã Ã the_the_the"};
  const auto tokenizer = train_byte_pair_tokenizer(
      texts, {.vocabulary_size = 400, .special_tokens = {"ab", "the"}, .min_frequency = 1});
  EXPECT_NO_THROW(parse_tokenizer_json(tokenizer->to_json(), "saved"));
}

TEST(Training, IsTheSameAfterSaving) {
  const auto tokenizer = small_tokenizer();
  const auto again = parse_tokenizer_json(tokenizer->to_json(), "saved");
  EXPECT_EQ(again->to_json(), tokenizer->to_json());
  EXPECT_EQ(again->content_key(), tokenizer->content_key());
  EXPECT_EQ(again->encode(small_text), tokenizer->encode(small_text));
  EXPECT_LT(tokenizer->encode(small_text).size(), small_text.size() / 2);
}

TEST(Training, RefusesOptionsThatMakeNoSense) {
  const std::vector<std::string_view> texts = {small_text};
  const auto train = [&](const BytePairTrainingOptions& options) {
    train_byte_pair_tokenizer(texts, options);
  };
  EXPECT_THROW(train({.vocabulary_size = 256}), Error);
  EXPECT_THROW(train({.vocabulary_size = -5}), Error);
  EXPECT_THROW(train({.vocabulary_size = 300, .min_frequency = 0}), Error);
  EXPECT_THROW(train({.vocabulary_size = 300, .special_tokens = {""}}), Error);
  EXPECT_THROW(train({.vocabulary_size = 300, .special_tokens = {"!"}}), Error);
  EXPECT_THROW(train({.vocabulary_size = 300, .special_tokens = {"<a>", "<a>"}}), Error);
  EXPECT_THROW(train({.vocabulary_size = 300, .special_tokens = {"\xFF\xFF"}}), Error);
}

TEST(Training, StopsAndReports) {
  const std::vector<std::string_view> texts = {small_text};
  std::atomic<bool> stop{true};
  try {
    train_byte_pair_tokenizer(texts, {.vocabulary_size = 300}, {}, &stop);
    FAIL() << "not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::interrupted);
  }
  std::map<std::string, Progress> last;
  train_byte_pair_tokenizer(texts, {.vocabulary_size = 300},
                            [&](const Progress& progress) { last[progress.what] = progress; });
  ASSERT_EQ(last.size(), 2u);
  for (const auto& [what, progress] : last) EXPECT_EQ(progress.done, progress.total) << what;
}

}  // namespace
}  // namespace heed
