#include "tokenizer/unigram_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "tokenizer/small_published.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

std::unique_ptr<Tokenizer> unigram(const std::function<void(Json&)>& change = {}) {
  Json document = small_unigram_document();
  if (change) change(document);
  return parse_tokenizer_json(document.dump(), "file.json");
}

std::string unigram_refusal(const std::function<void(Json&)>& change, ErrorCode code) {
  try {
    unigram(change);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "not refused";
}

// 3 ▁the, 4 ▁t, 5 he, 6 ▁, 7 t, 8 h, 9 e, 10 f, 11 i, 12 é, 13 ., 14 ▁▁, 15 <extra_id_0>
TEST(Unigram, TakesTheBestSum) {
  const auto tokenizer = unigram();
  EXPECT_EQ(tokenizer->kind(), TokenizerKind::unigram);
  EXPECT_EQ(tokenizer->encode("the  he\tth"), (Ids{3, 6, 5, 4, 8}));
}

TEST(Unigram, PutsUnknownCharactersTogether) {
  const auto tokenizer = unigram();
  EXPECT_EQ(tokenizer->encode("the注意e"), (Ids{3, 2, 9}));
  EXPECT_EQ(tokenizer->unknown(), 2);
  EXPECT_EQ(tokenizer->encode("\xFF"), (Ids{6, 2}));
}

// All ways to cut a word, added up.
double best_score(std::string_view word, const std::map<std::string, double>& scores) {
  if (word.empty()) return 0;
  double best = -1e9;
  for (const auto& [token, score] : scores) {
    if (word.starts_with(token)) {
      best = std::max(best, score + best_score(word.substr(token.size()), scores));
    }
  }
  return best;
}

TEST(Unigram, EqualsTheExhaustiveSearch) {
  RandomStream random(3, 0);
  std::map<std::string, double> scores;
  const auto tokenizer = unigram([&](Json& d) {
    d["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "never"}};
    Json& vocabulary = d["model"]["vocab"];
    vocabulary = Json::array({{"<pad>", 0}, {"</s>", 0}, {"<unk>", 0}});
    for (const char* token :
         {"a", "b", "ab", "ba", "aab", "bab", "abba", "bb", "aa", "baab", "bba"}) {
      const double score = -1 - 4 * random.uniform();
      scores[token] = score;
      vocabulary.push_back(Json::array({token, score}));
    }
    d["added_tokens"].erase(3);
  });
  for (int round = 0; round < 200; ++round) {
    std::string word;
    for (std::uint64_t i = 1 + random.below(12); i > 0; --i) {
      word.push_back(random.below(2) == 0 ? 'a' : 'b');
    }
    double score = 0;
    for (const std::int32_t id : tokenizer->encode(word)) {
      ASSERT_TRUE(scores.contains(tokenizer->token_bytes(id)));
      score += scores[tokenizer->token_bytes(id)];
    }
    ASSERT_NEAR(score, best_score(word, scores), 1e-12) << word;
  }
}

TEST(Unigram, Normalises) {
  const auto tokenizer = unigram();
  EXPECT_EQ(tokenizer->encode("\uFB01"), (Ids{6, 10, 11}));
  EXPECT_EQ(tokenizer->encode("e\u0301"), (Ids{6, 12}));
  EXPECT_EQ(tokenizer->encode("t\u200Bh\u2026"), (Ids{4, 8, 13, 13, 13}));
}

TEST(Unigram, SpansCoverTheText) {
  const auto tokenizer = unigram();
  // Seven bytes: a space, the ligature of three, a space, t and a line end.
  EXPECT_THAT(tokenizer->encode_with_offsets(" \uFB01 t\n"),
              ElementsAre(TokenSpan{6, 0, 1}, TokenSpan{10, 1, 4}, TokenSpan{11, 4, 4},
                          TokenSpan{4, 4, 7}));
}

TEST(Unigram, FallsBackToBytes) {
  const auto tokenizer = unigram([](Json& d) {
    d["model"]["byte_fallback"] = true;
    d["decoder"] = {{"type", "Sequence"},
                    {"decoders",
                     {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                      {{"type", "ByteFallback"}},
                      {{"type", "Fuse"}},
                      {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
    d["added_tokens"].erase(3);
    for (const char* token : {"<0xC3>", "<0x9F>"}) {
      d["model"]["vocab"].push_back(Json::array({token, 0}));
    }
  });
  const Ids ids = tokenizer->encode("ß t");
  EXPECT_EQ(ids, (Ids{6, 15, 16, 4}));
  EXPECT_EQ(tokenizer->decode(ids), "ß t");
  EXPECT_EQ(tokenizer->encode("ä"), (Ids{6, 2}));  // not all of its bytes are tokens
}

TEST(Unigram, FramesAndDecodes) {
  const auto tokenizer = unigram();
  const Ids ids = tokenizer->encode("the <extra_id_0> he", {.add_ending = true});
  EXPECT_EQ(ids, (Ids{3, 15, 6, 5, 1}));
  EXPECT_EQ(tokenizer->decode(ids), "the<extra_id_0> he</s>");
  EXPECT_EQ(tokenizer->decode(ids, {.special_tokens = false}), "the he");
  EXPECT_EQ(tokenizer->padding(), 0);
  EXPECT_EQ(tokenizer->end_of_text(), 1);
}

TEST(Unigram, IsTheSameAfterSaving) {
  const auto tokenizer = unigram([](Json& d) {
    d["normalizer"] = {{"type", "Sequence"},
                       {"normalizers",
                        {d["normalizer"],
                         {{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}},
                         {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "▁"}},
                         {{"type", "Replace"}, {"pattern", {{"String", "``"}}}, {"content", "\""}},
                         {{"type", "Lowercase"}}}}};
  });
  const auto again = parse_tokenizer_json(tokenizer->to_json(), "saved");
  EXPECT_EQ(again->content_key(), tokenizer->content_key());
  const std::string_view text = "THE \uFB01  t  ";
  EXPECT_EQ(again->encode(text), tokenizer->encode(text));
  EXPECT_EQ(tokenizer->encode(text), (Ids{3, 6, 10, 11, 4}));
}

TEST(Unigram, NamesWhatItCannotDo) {
  const auto unsupported = [](const std::function<void(Json&)>& change, const char* named) {
    EXPECT_THAT(unigram_refusal(change, ErrorCode::unsupported),
                ::testing::AllOf(HasSubstr("file.json"), HasSubstr(named)));
  };
  unsupported([](Json& d) { d["normalizer"] = {{"type", "Nmt"}}; }, "Nmt");
  unsupported([](Json& d) { d["pre_tokenizer"] = {{"type", "Digits"}}; }, "Digits");
  unsupported([](Json& d) { d.erase("pre_tokenizer"); }, "Metaspace");
  unsupported([](Json& d) { d["decoder"] = {{"type", "BPEDecoder"}}; }, "BPEDecoder");
  unsupported([](Json& d) { d["model"].erase("unk_id"); }, "unk_id");
  unsupported([](Json& d) { d["model"]["byte_fallback"] = true; }, "byte_fallback");
  unsupported(
      [](Json& d) {
        d["pre_tokenizer"]["pretokenizers"][1]["prepend_scheme"] = "first";
        d["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "``"}}}, {"content", "x"}};
      },
      "prepend_scheme");
}

TEST(Unigram, NamesWhatIsDamaged) {
  const auto damaged = [](const std::function<void(Json&)>& change, const char* named) {
    EXPECT_THAT(unigram_refusal(change, ErrorCode::corrupt_data),
                ::testing::AllOf(HasSubstr("file.json"), HasSubstr(named)));
  };
  damaged([](Json& d) { d["model"]["unk_id"] = 15; }, "unk_id");
  damaged([](Json& d) { d["model"]["vocab"][4] = "▁t"; }, "4");
  damaged([](Json& d) { d["model"]["vocab"][4][0] = ""; }, "4");
  damaged([](Json& d) { d["model"]["vocab"][4][0] = "he"; }, "'he'");
  damaged([](Json& d) { d["model"]["vocab"] = Json::array(); }, "vocab");
  damaged([](Json& d) { d["added_tokens"][3]["id"] = 99; }, "99");
  damaged([](Json& d) { d["added_tokens"][3]["id"] = 4; }, "<extra_id_0>");
  damaged([](Json& d) { d["normalizer"]["precompiled_charsmap"] = "!"; }, "base64");
}

}  // namespace
}  // namespace heed
