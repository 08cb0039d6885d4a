// Tokenizers that would take more time or memory than their text accounts for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tokenizer/small_metaspace.h"
#include "tokenizer/small_published.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/word_piece_tokenizer.h"

namespace heed {
namespace {

using ::testing::HasSubstr;

template <class Action>
std::string unsupported(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
    return error.what();
  }
  return "not refused";
}

Json doubling(int times) {
  Json document = small_unigram_document();
  Json steps = Json::array();
  for (int i = 0; i < times; ++i) {
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "t"}}}, {"content", "tt"}});
  }
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  return document;
}

// Forty steps would make 2^40 bytes of each.
TEST(HostileTokenizer, TextsGrowByAStatedFactor) {
  const auto encode = [](const Json& document) {
    return parse_tokenizer_json(document.dump(), "file.json")->encode(std::string(1000, 't'));
  };
  EXPECT_GE(encode(doubling(4)).size(), 16'000u / 2);  // 16 bytes for each
  EXPECT_THAT(unsupported([&] { encode(doubling(5)); }), HasSubstr("16000 bytes"));
  EXPECT_THAT(unsupported([&] { encode(doubling(40)); }), HasSubstr("16000 bytes"));
  Json once = doubling(1);
  once["normalizer"]["normalizers"][0]["content"] = std::string(1 << 20, 't');
  EXPECT_THAT(unsupported([&] { encode(once); }), HasSubstr("16000 bytes"));
}

// Every position of a text is looked at for each token: long ones would cost their length there.
TEST(HostileTokenizer, SoughtTokensHaveAStatedLength) {
  const std::string longest(1024, 'x');
  const auto with_word = [&](Json document, const std::string& word) {
    Json& vocabulary = document["model"]["vocab"];
    if (vocabulary.is_array()) {
      vocabulary.insert(vocabulary.begin() + 3, Json::array({word, -1.0}));
      document["added_tokens"].erase(3);
    } else {
      vocabulary[word] = vocabulary.size();
    }
    return parse_tokenizer_json(document.dump(), "file.json");
  };
  for (const Json& document : {small_unigram_document(), small_word_piece_document()}) {
    EXPECT_NO_THROW(with_word(document, longest));
    EXPECT_THAT(unsupported([&] { with_word(document, longest + "x"); }),
                ::testing::AllOf(HasSubstr("1025 bytes"), HasSubstr("1024")));
  }
  Json document = small_metaspace_json();
  document["added_tokens"].push_back(
      {{"id", document["model"]["vocab"].size()}, {"content", longest}, {"special", true}});
  EXPECT_EQ(small_metaspace(document)->encode(longest).size(), 1u);
  document["added_tokens"].back()["content"] = longest + "x";
  EXPECT_THAT(unsupported([&] { small_metaspace(document); }), HasSubstr("1025 bytes"));
  EXPECT_THAT(
      unsupported([&] { read_word_piece_lines("[UNK]\n" + longest + "x\n", {}, "vocab.txt"); }),
      HasSubstr("vocab.txt"));
  // Words of other kinds are not looked for.
  document = small_metaspace_json();
  document["model"]["vocab"][longest + "x"] = document["model"]["vocab"].size();
  EXPECT_NO_THROW(small_metaspace(document));
}

}  // namespace
}  // namespace heed
