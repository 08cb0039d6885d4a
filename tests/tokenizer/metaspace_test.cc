#include "tokenizer/metaspace_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "tokenizer/small_metaspace.h"

namespace heed {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text,
                                EncodeOptions options = {}) {
  std::vector<std::string> result;
  for (const std::int32_t id : tokenizer.encode(text, options)) {
    result.push_back(tokenizer.token_bytes(id));
  }
  return result;
}

TEST(Metaspace, PutsASpaceFirst) {
  const auto tokenizer = small_metaspace();
  EXPECT_EQ(tokenizer->kind(), TokenizerKind::metaspace);
  EXPECT_THAT(pieces(*tokenizer, "the cat"), ElementsAre(" the", " cat"));
  EXPECT_THAT(pieces(*tokenizer, " the"), ElementsAre(" ", " the"));
  EXPECT_THAT(pieces(*tokenizer, "the</s>the"), ElementsAre(" the", "</s>", " the"));
  EXPECT_THAT(pieces(*tokenizer, "the", {.continues = true}), ElementsAre("t", "he"));
  EXPECT_TRUE(tokenizer->encode("").empty());
}

TEST(Metaspace, FollowsTheSchemeOfThePreTokenizer) {
  const auto first = small_metaspace(small_metaspace_json("first", false));
  EXPECT_THAT(pieces(*first, "the</s>the"), ElementsAre(" the", "</s>", "t", "he"));
  EXPECT_THAT(pieces(*first, " the"), ElementsAre(" the"));  // has its space already
  const auto always = small_metaspace(small_metaspace_json("always", true));
  EXPECT_THAT(pieces(*always, "the</s>the"), ElementsAre(" the", "</s>", " the"));
  EXPECT_THAT(pieces(*always, "a    a"), ElementsAre(" a", " ", " ", " ", " a"));
  const auto never = small_metaspace(small_metaspace_json("never", false));
  EXPECT_THAT(pieces(*never, "the the"), ElementsAre("t", "he", " the"));
  EXPECT_EQ(never->decode(never->encode(" the")), " the");
}

TEST(Metaspace, WritesUnknownCharactersAsBytes) {
  const auto tokenizer = small_metaspace();
  EXPECT_THAT(pieces(*tokenizer, "é\n"), ElementsAre(" ", "é", "\n"));
  EXPECT_THAT(pieces(*tokenizer, "ü"), ElementsAre(" ", "\xC3", "\xBC"));
  EXPECT_THAT(pieces(*tokenizer, "\xFF"), ElementsAre(" ", "\xFF"));
}

// As in Gemma's file, where a tab is a token and has no byte.
TEST(Metaspace, NeedsNoBytesOfCharactersThatAreTokens) {
  Json document = small_metaspace_json();
  Json& vocabulary = document["model"]["vocab"];
  vocabulary["\t"] = vocabulary["<0x09>"];
  vocabulary.erase("<0x09>");
  EXPECT_THAT(pieces(*small_metaspace(document), "\tt"), ElementsAre(" ", "\t", "t"));
  vocabulary.erase("\t");
  vocabulary["x"] = 12;
  EXPECT_THROW(small_metaspace(document), Error);
}

// As in Gemma's file, where runs of spaces are added tokens that merges make too.
TEST(Metaspace, ReadsAddedTokensOfSpaces) {
  Json document = small_metaspace_json();
  document["added_tokens"].push_back({{"id", document["model"]["vocab"]["▁▁"]},
                                      {"content", "▁▁"},
                                      {"special", false},
                                      {"normalized", false}});
  const auto tokenizer = small_metaspace(document);
  const std::string text = "n  n";
  EXPECT_THAT(pieces(*tokenizer, text), ElementsAre(" ", "n", "  ", "n"));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_EQ(tokenizer->encode_with_offsets(text).size(), 4u);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("n▁▁n")), text);
}

// As in Gemma's file, whose normaliser has replaced all spaces before.
TEST(Metaspace, MayBeSplitAtSpacesThatAreNotThere) {
  Json document = small_metaspace_json();
  document["pre_tokenizer"] = {{"type", "Split"},
                               {"pattern", {{"String", " "}}},
                               {"behavior", "MergedWithPrevious"},
                               {"invert", false}};
  const auto tokenizer = small_metaspace(document);
  EXPECT_EQ(tokenizer->content_key(), small_metaspace()->content_key());
  document["normalizer"] = nullptr;
  document["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers", Json::array({document["pre_tokenizer"],
                                     {{"type", "Metaspace"}, {"replacement", "\u2581"}}})}};
  EXPECT_THROW(small_metaspace(document), Error);
}

TEST(Metaspace, FusesUnknownTokens) {
  Json document = small_metaspace_json();
  document["model"]["byte_fallback"] = false;
  const std::string text = "tüöt 👩x ü";
  const auto fused = small_metaspace(document);
  EXPECT_EQ(fused->unknown(), 0);
  EXPECT_THAT(pieces(*fused, text), ElementsAre(" t", "<unk>", "t", " ", "<unk>", " ", "<unk>"));
  document["model"]["fuse_unk"] = false;
  const auto alone = small_metaspace(document);
  EXPECT_THAT(pieces(*alone, "tüö"), ElementsAre(" t", "<unk>", "<unk>"));
  for (const Tokenizer* tokenizer : {fused.get(), alone.get()}) {
    std::string covered;
    for (const TokenSpan& span : tokenizer->encode_with_offsets(text)) {
      covered += text.substr(span.begin, span.end - span.begin);
    }
    EXPECT_EQ(covered, text);
  }
  EXPECT_EQ(fused->encode_with_offsets("tüöt")[1], (TokenSpan{0, 1, 5}));
  // The added token ends the run of unknown characters, whose own characters are unknown too.
  EXPECT_EQ(fused->encode_with_offsets("tü<s>")[1], (TokenSpan{0, 1, 3}));
}

TEST(Metaspace, GivesOffsetsThatCoverTheText) {
  const auto tokenizer = small_metaspace();
  const auto id = [&](std::string_view piece) {
    return tokenizer->encode(piece, {.continues = true}).at(0);
  };
  // The first token has a space that is not in the text; U+2581 is three bytes of it.
  EXPECT_THAT(
      tokenizer->encode_with_offsets("the\u2581cat<s>n"),
      ElementsAre(TokenSpan{id(" the"), 0, 3}, TokenSpan{id(" cat"), 3, 9}, TokenSpan{1, 9, 12},
                  TokenSpan{id(" "), 12, 12}, TokenSpan{id("n"), 12, 13}));
  EXPECT_THAT(tokenizer->encode_with_offsets("n", {.add_beginning = true}),
              ElementsAre(TokenSpan{1, 0, 0}, TokenSpan{id(" "), 0, 0}, TokenSpan{id("n"), 0, 1}));
}

TEST(Metaspace, AddsTheTemplatesTokensWhenAsked) {
  Json document = small_metaspace_json();
  const auto tokenizer = small_metaspace(document);
  EXPECT_THAT(pieces(*tokenizer, "the", {.add_beginning = true, .add_ending = true}),
              ElementsAre("<s>", " the"));
  EXPECT_EQ(tokenizer->beginning_of_text(), 1);
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  EXPECT_EQ(tokenizer->find_added_token("</s>"), 2);
  EXPECT_EQ(tokenizer->find_added_token("the"), std::nullopt);
  Json& step = document["post_processor"];
  step["single"].push_back({{"SpecialToken", {{"id", "end"}, {"type_id", 0}}}});
  step["special_tokens"]["end"] = {{"id", "end"}, {"ids", Json::array({2, 2})}};
  const auto ended = small_metaspace(document);
  EXPECT_THAT(pieces(*ended, "the", {.add_ending = true}), ElementsAre(" the", "</s>", "</s>"));
  EXPECT_THAT(ended->encode_with_offsets("the", {.add_ending = true}).back(), (TokenSpan{2, 3, 3}));
  EXPECT_NE(ended->content_key(), tokenizer->content_key());
}

TEST(Metaspace, DecodesWithoutTheSpaceThatItPut) {
  const auto tokenizer = small_metaspace();
  for (const std::string text : {"the cat", " the", "the</s>the </s> the", "\xFFü", "</s>", ""}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  const auto ids = tokenizer->encode("the</s>the", {.add_beginning = true});
  EXPECT_EQ(tokenizer->decode(ids), "<s>the</s>the");
  // The words of Hugging Face's decoder, which takes away one space of the whole.
  EXPECT_EQ(tokenizer->decode(ids, {.special_tokens = false}), "the the");
}

const std::vector<std::string> spaced_parts = {"the",  " the", " ", "    ", "o",    "o t",  " cat",
                                               "eee",  "\n",   "é", "注",   "ü",    "👩",    "</s>",
                                               "\xFF", "a",    "t", "e o",  "<s> ", "oo  t"};

std::string random_text(RandomStream& random, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += spaced_parts[random.below(spaced_parts.size())];
  return text;
}

// The definition: merge the leftmost of the best-ranked pairs of a whole part until none is left.
std::vector<std::string> merge_naively(const Json& document, std::string_view text) {
  std::vector<std::string> symbols;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = read_utf8(text, i);
    const std::string symbol(text.substr(i, character.length));
    symbols.push_back(symbol == " " ? "▁" : symbol);
    i += character.length;
  }
  for (;;) {
    std::size_t best_rank = document["model"]["merges"].size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (document["model"]["merges"][rank].get_ref<const std::string&>() ==
            symbols[i] + " " + symbols[i + 1]) {
          best_rank = rank;
          best = i;
        }
      }
    }
    if (best_rank == document["model"]["merges"].size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  for (std::string& symbol : symbols) {
    for (std::size_t at; (at = symbol.find("▁")) != std::string::npos;) symbol.replace(at, 3, " ");
  }
  return symbols;
}

TEST(Metaspace, MergesTheWholeText) {
  const Json document = small_metaspace_json();
  const auto tokenizer = small_metaspace(document);
  const std::vector<std::string> known = {"the", " the", " ", "   ", "o", "o t", "eee", "cat", "a"};
  RandomStream random(31, 0);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 10; ++i) text += known[random.below(known.size())];
    ASSERT_EQ(pieces(*tokenizer, text), merge_naively(document, " " + text)) << text;
  }
}

TEST(Metaspace, RoundTripsEveryByteString) {
  const auto tokenizer = small_metaspace();
  RandomStream random(32, 0);
  for (int round = 0; round < 3000; ++round) {
    std::string text = random_text(random, random.below(30));
    for (std::size_t i = 0; i < random.below(8); ++i) {
      text.push_back(static_cast<char>(random.below(256)));
    }
    if (text.find("▁") != std::string::npos) continue;
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
    std::size_t end = 0;
    for (const TokenSpan& span : tokenizer->encode_with_offsets(text)) {
      ASSERT_EQ(span.begin, end);
      end = span.end;
    }
    ASSERT_EQ(end, text.size());
  }
}

TEST(Metaspace, MayBeCutWhereItSays) {
  RandomStream random(33, 0);
  for (const Json& document : {small_metaspace_json(), small_metaspace_json("always", true),
                               small_metaspace_json("first", false)}) {
    const auto tokenizer = small_metaspace(document);
    int cuts = 0;
    for (int round = 0; round < 2000; ++round) {
      const std::string text = random_text(random, 12);
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
}

TEST(Metaspace, EncodesAlikeOnAnyNumberOfThreads) {
  const auto tokenizer = small_metaspace();
  RandomStream random(34, 0);
  const std::string text = random_text(random, 300'000);
  const int before = thread_count();
  set_thread_count(1);
  const auto serial = tokenizer->encode(text);
  std::vector<std::int32_t> by_part;  // between added tokens: no text is cut
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find("</s>", begin), text.size());
    const auto part = tokenizer->encode(std::string_view(text).substr(begin, end - begin));
    by_part.insert(by_part.end(), part.begin(), part.end());
    if (end < text.size()) by_part.push_back(2);
    begin = end + 4;
  }
  EXPECT_EQ(serial, by_part);
  set_thread_count(3);
  EXPECT_EQ(tokenizer->encode(text), serial);
  set_thread_count(before);
}

// One word of a million characters: quadratic merging would take hours.
TEST(Metaspace, TakesLongRunsInStride) {
  const auto tokenizer = small_metaspace();
  for (const char* unit : {"e", "the", " ", "o t", "\xFF", "注"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(Metaspace, IsTheSameAfterSaving) {
  RandomStream random(35, 0);
  Json without_bytes = small_metaspace_json();
  without_bytes["model"]["byte_fallback"] = false;
  Json with_gap = small_metaspace_json();
  with_gap["model"]["vocab"]["zz"] = with_gap["model"]["vocab"].size() + 40;
  std::vector<std::string> keys;
  for (const Json& document :
       {small_metaspace_json(), small_metaspace_json("first", false),
        small_metaspace_json("first", true), small_metaspace_json("always", false),
        small_metaspace_json("never", true), without_bytes, with_gap}) {
    const auto tokenizer = small_metaspace(document);
    const auto again = parse_tokenizer_json(tokenizer->to_json(), "saved");
    EXPECT_EQ(again->to_json(), tokenizer->to_json());
    EXPECT_EQ(again->vocabulary_size(), tokenizer->vocabulary_size());
    for (int round = 0; round < 300; ++round) {
      const std::string text = random_text(random, 10);
      const auto ids = tokenizer->encode(text, {.add_beginning = true});
      ASSERT_EQ(again->encode(text, {.add_beginning = true}), ids);
      ASSERT_EQ(again->decode(ids), tokenizer->decode(ids));
    }
    keys.push_back(tokenizer->content_key());
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

}  // namespace
}  // namespace heed
