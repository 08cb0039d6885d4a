// Special tokens that are found only within some ranges of a text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tokenizer/small_metaspace.h"
#include "tokenizer/small_published.h"
#include "tokenizer/small_tokenizer.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<std::int32_t>;

Ids within(const Tokenizer& tokenizer, std::string_view text, std::vector<TextRange> ranges) {
  return tokenizer.encode(text, {.special_ranges = ranges});
}

Json added(std::size_t id, const std::string& content, bool special = true) {
  return {{"id", id}, {"content", content}, {"special", special}, {"normalized", false}};
}

TEST(SpecialRanges, AreWhereSpecialTokensAreFound) {
  const auto tokenizer = small_tokenizer();
  const std::string token(end_of_text_name);
  const std::string text = token + "the" + token;
  const std::size_t size = token.size();
  const Ids all = tokenizer->encode(text);
  const Ids plain = tokenizer->encode(text, {.special_tokens = false});
  EXPECT_EQ(within(*tokenizer, text, {{0, text.size()}}), all);
  EXPECT_EQ(within(*tokenizer, text, {{0, size}, {size + 3, text.size()}}), all);
  EXPECT_EQ(within(*tokenizer, text, {}), plain);
  // A token that only begins or ends in a range was not written there.
  EXPECT_EQ(within(*tokenizer, text, {{1, size}, {size + 3, text.size() - 1}}), plain);
  EXPECT_EQ(within(*tokenizer, text, {{0, 5}, {5, size}}), plain);
  const Ids first = within(*tokenizer, text, {{0, size + 3}});
  EXPECT_EQ(first.front(), all.front());
  EXPECT_GT(first.size(), all.size());
  EXPECT_EQ(tokenizer->decode(first), text);
}

// What the tokenizer does around a match it does here too: the space of Prepend behind <s>.
TEST(SpecialRanges, LeaveTheRestToTheTokenizer) {
  for (const char* scheme : {"", "always", "first", "never"}) {
    const std::string name = scheme;
    const auto tokenizer =
        small_metaspace(name.empty() ? small_metaspace_json() : small_metaspace_json(scheme, true));
    const std::string text = "<s>the cat</s><s>the";
    EXPECT_EQ(within(*tokenizer, text, {{0, 3}, {10, 17}}), tokenizer->encode(text)) << name;
  }
  Json document = small_metaspace_json();
  Json right = added(document["model"]["vocab"].size(), "<r>");
  right["rstrip"] = right["lstrip"] = true;
  document["added_tokens"].push_back(right);
  const auto tokenizer = small_metaspace(document);
  const std::string text = "the \n<r>\n the";
  EXPECT_EQ(within(*tokenizer, text, {{5, 8}}), tokenizer->encode(text));
  EXPECT_EQ(tokenizer->encode_with_offsets(text, {.special_ranges = std::array{TextRange{5, 8}}}),
            tokenizer->encode_with_offsets(text));
}

TEST(SpecialRanges, LeaveOtherAddedTokensAlone) {
  Json document = small_metaspace_json();
  const std::size_t size = document["model"]["vocab"].size();
  document["added_tokens"].push_back(added(size, "<a", false));
  document["added_tokens"].push_back(added(size + 1, "<a>"));
  document["added_tokens"].push_back(added(size + 2, "a>", false));
  const auto tokenizer = small_metaspace(document);
  const auto first = [&](std::vector<TextRange> ranges) {
    return within(*tokenizer, "<a>", std::move(ranges)).front();
  };
  EXPECT_EQ(first({{0, 3}}), static_cast<std::int32_t>(size + 1));
  EXPECT_EQ(first({}), static_cast<std::int32_t>(size)) << "the longest of those that may be found";
}

// Ranges are of the text as given, also for tokens that are looked for in the normalised text.
TEST(SpecialRanges, AreOfTheTextBeforeItIsNormalised) {
  Json document = small_metaspace_json();
  Json token = added(document["model"]["vocab"].size(), "<x>");
  token["normalized"] = true;
  document["added_tokens"].push_back(token);
  const auto spaced = small_metaspace(document);
  // The token begins with the space that Prepend puts before it; in the text it may be another's.
  const std::string text = "the\u2581\u2581<x>the <x>";
  EXPECT_EQ(within(*spaced, text, {{9, 12}, {16, 19}}), spaced->encode(text));
  const Ids one = within(*spaced, text, {{16, 19}});
  EXPECT_EQ(std::ranges::count(one, token["id"].get<std::int32_t>()), 1);

  Json bert = small_word_piece_document();
  Json lower = added(bert["model"]["vocab"].size(), "<X\u0301>");
  lower["normalized"] = true;
  bert["added_tokens"].push_back(lower);
  const auto cased = parse_tokenizer_json(bert.dump(), "file.json");
  // BERT's normaliser drops U+0001 before and behind, and the accent.
  const std::string shouted = "the\u0001<X\u0301>\u0001cat <x>";
  EXPECT_EQ(within(*cased, shouted, {{4, 9}}).size(), cased->encode("the<x>cat").size() + 3);
  EXPECT_EQ(within(*cased, shouted, {{4, 9}, {14, 17}}), cased->encode(shouted));
  EXPECT_EQ(within(*cased, shouted, {{5, 9}, {14, 16}}),
            cased->encode(shouted, {.special_tokens = false}));
}

// A token that its normaliser leaves nothing of is never found.
TEST(SpecialRanges, ManageTokensThatVanish) {
  Json bert = small_word_piece_document();
  Json gone = added(bert["model"]["vocab"].size(), "\u0001");
  gone["normalized"] = true;
  bert["added_tokens"].push_back(gone);
  const auto tokenizer = parse_tokenizer_json(bert.dump(), "file.json");
  EXPECT_EQ(tokenizer->encode("the\u0001 cat"), tokenizer->encode("the cat"));
}

}  // namespace
}  // namespace heed
