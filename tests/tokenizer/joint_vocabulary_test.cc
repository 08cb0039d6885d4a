#include "tokenizer/train_byte_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/temporary_directory.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view english =
    "A man in a blue shirt is standing on a ladder.\nA man and a dog are in the street.\n";
constexpr std::string_view german =
    "Ein Mann in einem blauen Hemd steht auf einer Leiter.\nEin Mann und ein Hund sind auf der "
    "Straße.\n";

std::unique_ptr<BytePairTokenizer> learn(const JointVocabularyOptions& options) {
  const std::vector<std::string_view> texts = {english, german};
  return learn_joint_vocabulary(texts, options);
}

TEST(JointVocabulary, ReservesTheFirstIds) {
  const auto tokenizer = learn({.vocabulary_size = 280, .special_tokens = {">>de<<"}});
  EXPECT_EQ(tokenizer->vocabulary_size(), 280);
  EXPECT_EQ(tokenizer->token_bytes(0), "<pad>");
  EXPECT_EQ(tokenizer->token_bytes(1), "<s>");
  EXPECT_EQ(tokenizer->token_bytes(2), "</s>");
  EXPECT_EQ(tokenizer->token_bytes(3), "<unk>");
  EXPECT_EQ(tokenizer->token_bytes(4), ">>de<<");
  EXPECT_EQ(tokenizer->token_bytes(5), "!");  // the first byte in GPT-2's order
  EXPECT_EQ(tokenizer->padding(), 0);
  EXPECT_EQ(tokenizer->start(), 1);
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  EXPECT_EQ(tokenizer->find_added_token("<unk>"), 3);
  EXPECT_EQ(tokenizer->encode(">>de<< ").front(), 4);
}

TEST(JointVocabulary, MergesAsTheLearnerOfOneTextDoes) {
  const auto joint = learn({.vocabulary_size = 320});
  const std::vector<std::string_view> texts = {english, german};
  const auto plain =
      train_byte_pair_tokenizer(texts, {.vocabulary_size = 316, .special_tokens = {}});
  ASSERT_EQ(joint->merges().size(), plain->merges().size());
  for (std::size_t rank = 0; rank < plain->merges().size(); ++rank) {
    EXPECT_EQ(joint->merges()[rank].left, plain->merges()[rank].left + 4);
    EXPECT_EQ(joint->merges()[rank].right, plain->merges()[rank].right + 4);
  }
  std::vector<std::int32_t> expected = plain->encode(german);
  for (std::int32_t& id : expected) id += 4;
  EXPECT_EQ(joint->encode(german), expected);
  EXPECT_LT(expected.size(), german.size() * 3 / 4);
}

TEST(JointVocabulary, EndsATextOnRequest) {
  const auto tokenizer = learn({.vocabulary_size = 320});
  const std::string_view text = "Ein Mann 注\xFF";
  std::vector<std::int32_t> ids = tokenizer->encode(text);
  EXPECT_EQ(tokenizer->decode(ids), text);
  ids.push_back(2);
  EXPECT_EQ(tokenizer->encode(text, {.add_beginning = true, .add_ending = true}), ids);
  EXPECT_EQ(tokenizer->decode(ids, {.special_tokens = false}), text);
}

TEST(JointVocabulary, IsTheSameAfterSaving) {
  const auto tokenizer = learn({.vocabulary_size = 320, .special_tokens = {"<mask>"}});
  const auto directory = testing::new_directory("joint_vocabulary");
  tokenizer->save(directory);
  const auto again = load_tokenizer(directory);
  EXPECT_EQ(again->content_key(), tokenizer->content_key());
  EXPECT_EQ(again->padding(), 0);
  EXPECT_EQ(again->start(), 1);
  EXPECT_EQ(again->end_of_text(), 2);
  EXPECT_EQ(again->mask(), 4);
  EXPECT_THAT(again->text_template().after, ElementsAre(2));
  EXPECT_EQ(again->encode(german, {.add_ending = true}),
            tokenizer->encode(german, {.add_ending = true}));
}

TEST(JointVocabulary, LearnsFromFiles) {
  const auto directory = testing::new_directory("texts");
  const std::vector<std::filesystem::path> files = {directory / "joint.en", directory / "joint.de"};
  std::ofstream(files[0]) << english;
  std::ofstream(files[1]) << german;
  EXPECT_EQ(learn_joint_vocabulary(files, {.vocabulary_size = 320})->to_json(),
            learn({.vocabulary_size = 320})->to_json());
}

TEST(JointVocabulary, RefusesOptionsThatMakeNoSense) {
  EXPECT_THROW(learn({.vocabulary_size = 259}), Error);
  EXPECT_THROW(learn({.vocabulary_size = 300, .special_tokens = {"<pad>"}}), Error);
  EXPECT_THROW(learn_joint_vocabulary(std::vector<std::string_view>{"", ""}), Error);
  const std::vector<std::string_view> texts = {english};
  try {
    train_byte_pair_tokenizer(texts, {.vocabulary_size = 300, .after_text = {"</s>"}});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("'</s>'"));
  }
}

}  // namespace
}  // namespace heed
