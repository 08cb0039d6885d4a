#include "tokenizer/vocabulary.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace heed {
namespace {

using Tokens = std::vector<std::pair<std::string_view, std::int32_t>>;

TEST(TokenTrie, FindsAllPrefixes) {
  RandomStream random(7, 0);
  for (int round = 0; round < 300; ++round) {
    const auto random_text = [&](std::size_t most) {
      std::string text;
      for (std::size_t i = 1 + random.below(most); i > 0; --i) {
        text.push_back("ab\xFF"[random.below(3)]);
      }
      return text;
    };
    std::set<std::string> texts;
    for (int i = 0; i < 12; ++i) texts.insert(random_text(8));
    Tokens tokens;
    for (const std::string& text : texts)
      tokens.emplace_back(text, static_cast<std::int32_t>(tokens.size()));
    const TokenTrie trie(tokens);
    EXPECT_LE(trie.node_count(), 2 * tokens.size() + 1);
    const std::string text = random_text(16);
    Tokens expected;
    for (std::size_t size = 1; size <= text.size(); ++size) {
      for (const auto& token : tokens) {
        if (token.first == text.substr(0, size)) expected.push_back(token);
      }
    }
    Tokens found;
    trie.for_each_prefix(text, [&](std::int32_t id, std::size_t size) {
      found.emplace_back(std::string_view(text).substr(0, size), id);
    });
    ASSERT_EQ(found, expected);
  }
  TokenTrie().for_each_prefix("a", [](std::int32_t, std::size_t) { FAIL(); });
}

// A node a byte would be some twenty times the memory of the file.
TEST(TokenTrie, HasFewNodesForLongTokens) {
  const std::string longest(1 << 20, 'a');
  const TokenTrie trie({{longest, 0}, {std::string_view(longest).substr(1000), 1}, {"b", 2}});
  EXPECT_EQ(trie.node_count(), 4u);
  EXPECT_EQ(trie.longest_prefix(longest).id, 0);
  EXPECT_EQ(trie.longest_prefix(std::string_view(longest).substr(1)).id, 1);
}

}  // namespace
}  // namespace heed
