#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/random.h"
#include "base/utf8.h"
#include "tokenizer/small_metaspace.h"
#include "tokenizer/small_tokenizer.h"

namespace heed {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> matches(const AddedToken& token, std::string_view text) {
  std::vector<std::string> found;
  for (const AddedTokenMatch& match : AddedTokenMatcher({token}).find_all(text)) {
    found.emplace_back(text.substr(match.begin, match.end - match.begin));
  }
  return found;
}

TEST(AddedTokens, StripWhiteSpace) {
  const std::string text = "a \n<x>\u00A0\u2003<x>b <x>";
  EXPECT_THAT(matches({.content = "<x>", .strip_left = true}, text),
              ElementsAre(" \n<x>", "\u00A0\u2003<x>", " <x>"));
  EXPECT_THAT(matches({.content = "<x>", .strip_right = true}, text),
              ElementsAre("<x>\u00A0\u2003", "<x>", "<x>"));
  EXPECT_THAT(matches({.content = "<x>", .strip_left = true, .strip_right = true}, text),
              ElementsAre(" \n<x>\u00A0\u2003", "<x>", " <x>"));
}

// Scanning the same white space again for each match would be quadratic.
TEST(AddedTokens, StripLongRunsInStride) {
  const std::string text(1'000'000, '\n');
  for (const bool left : {true, false}) {
    const AddedTokenMatcher matcher({{.content = "\n", .strip_left = left, .strip_right = !left}});
    const auto found = matcher.find_all(text);
    ASSERT_EQ(found.size(), text.size());
    EXPECT_EQ(found.back().end, text.size());
  }
}

TEST(AddedTokens, AreSingleWordsWhenAsked) {
  const AddedToken token{.content = "cat", .single_word = true};
  EXPECT_EQ(matches(token, "cat cats scat cat. -cat écat cat\u0301 cat_ cat1 cat").size(), 4u);
}

std::unique_ptr<Tokenizer> with_added(const std::vector<Json>& tokens, Json document) {
  for (const Json& token : tokens) document["added_tokens"].push_back(token);
  return parse_tokenizer_json(document.dump(), "file.json");
}

Json added(std::int32_t id, const std::string& content) {
  return {{"id", id}, {"content", content}, {"special", false}, {"normalized", false}};
}

TEST(AddedTokens, StandForWhatTheyTake) {
  Json token = added(320, "<x>");
  token["lstrip"] = true;
  const auto tokenizer = with_added({token}, Json::parse(small_tokenizer()->to_json()));
  const auto spans = tokenizer->encode_with_offsets("the  <x> cat");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[1], (TokenSpan{320, 3, 8}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the  <x> cat")), "the<x> cat");
  EXPECT_NE(
      tokenizer->content_key(),
      with_added({added(320, "<x>")}, Json::parse(small_tokenizer()->to_json()))->content_key());
}

// A token that is normalised is looked for after the others, in the normalised text.
TEST(AddedTokens, AreNormalised) {
  Json document = small_metaspace_json();
  const auto size = static_cast<std::int32_t>(document["model"]["vocab"].size());
  Json token = added(size, "<x>");
  token["normalized"] = true;
  const auto tokenizer = with_added({token}, document);
  // Its own text is normalised too, and so begins with a space.
  EXPECT_THAT(tokenizer->encode("<x>"), ElementsAre(size));
  EXPECT_THAT(tokenizer->encode("n <x>").size(), 3u);
  EXPECT_GT(tokenizer->encode("n<x>").size(), 3u);
  // It becomes a token only behind those that are not normalised.
  Json longer = added(size + 1, "x></s");
  longer["normalized"] = true;
  EXPECT_THAT(with_added({token, longer}, document)->encode("<x></s>"), ElementsAre(size, 2));
}

TEST(AddedTokens, MayBeCutWhereTheTokenizerSays) {
  Json spaces = added(320, "  ");
  Json inside = added(321, "the cat");
  Json right = added(322, "<r>");
  right["rstrip"] = true;
  Json left = added(323, "<l>");
  left["lstrip"] = true;
  const auto tokenizer =
      with_added({spaces, inside, right, left}, Json::parse(small_tokenizer()->to_json()));
  const std::vector<std::string> parts = {"the",     " cat", " ",  "  ", "<r>", "<l>",
                                          "the cat", "\n",   "12", "-",  "é",   "<|endoftext|>"};
  RandomStream random(41, 0);
  int cuts = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 10; ++i) text += parts[random.below(parts.size())];
    const auto whole = tokenizer->encode(text);
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if (!tokenizer->may_cut(text, cut)) continue;
      ++cuts;
      auto joined = tokenizer->encode(text.substr(0, cut));
      const auto rest = tokenizer->encode(text.substr(cut), {.continues = true});
      joined.insert(joined.end(), rest.begin(), rest.end());
      ASSERT_EQ(joined, whole) << printable(text) << " cut at " << cut;
    }
  }
  EXPECT_GT(cuts, 1000);
}

}  // namespace
}  // namespace heed
