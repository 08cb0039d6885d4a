#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/files.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "heed/heed.h"
#include "support/small_model.h"

namespace heed {
namespace {

class ModelTest : public testing::SmallModelTest {
 protected:
  Model model = Model::load(directory_->path());
  std::vector<std::int32_t> tokens = model.encode("A fluffy mole.");
};

TEST_F(ModelTest, EncodesAndDecodes) {
  EXPECT_TRUE(model.has_tokenizer());
  EXPECT_EQ(model.decode(tokens), "A fluffy mole.");
  EXPECT_EQ(model.dimensions().layers, 2);
  EXPECT_EQ(model.dimensions().heads, 3);
}

TEST_F(ModelTest, PredictsProbabilitiesThatSumToOne) {
  const auto next = model.predict(tokens, {}, 0);
  ASSERT_EQ(std::ssize(next), model.dimensions().vocabulary);
  double probability = 0;
  double drawn = 0;
  for (const Model::Next& candidate : next) {
    probability += candidate.probability;
    drawn += candidate.drawn;
    EXPECT_EQ(candidate.drawn == 0, !candidate.filtered.empty());
  }
  EXPECT_NEAR(probability, 1, 1e-9);
  EXPECT_NEAR(drawn, 1, 1e-9);
  EXPECT_GE(next[0].logit, next[1].logit);
  EXPECT_EQ(model.predict(tokens, {}, 3).size(), 3U);
}

TEST_F(ModelTest, GeneratesWhatItStreams) {
  std::string streamed;
  const auto all = model.generate("A mole", {.max_new_tokens = 12}, [&](std::string_view text) {
    streamed += text;
    return true;
  });
  EXPECT_EQ(streamed, all.text);
  const auto stopped =
      model.generate("A mole", {.max_new_tokens = 12}, [](std::string_view) { return false; });
  EXPECT_EQ(stopped.finish_reason, "interrupted");
  EXPECT_LT(stopped.tokens.size(), all.tokens.size());
}

TEST_F(ModelTest, AttentionRowsSumToOne) {
  const Model::Attention attention = model.attention(tokens);
  EXPECT_EQ(attention.tokens, std::ssize(tokens));
  for (std::int64_t t = 0; t < attention.tokens; ++t) {
    double sum = 0;
    for (std::int64_t s = 0; s < attention.tokens; ++s) sum += attention.weight(1, 2, t, s);
    EXPECT_NEAR(sum, 1, 1e-5);
    if (t + 1 < attention.tokens) {
      EXPECT_EQ(attention.weight(1, 2, t, t + 1), 0.0F);
    }
  }
}

TEST_F(ModelTest, TracesPointsByName) {
  const Trace trace = model.trace(tokens, {.points = {"blocks.*.attn.hook_z"}});
  ASSERT_EQ(trace.arrays.size(), 2U);
  EXPECT_EQ(trace.arrays[1].name, "blocks.1.attn.hook_z");
  EXPECT_THAT(trace.arrays[1].shape, ::testing::ElementsAre(1, std::ssize(tokens), 3, 8));
}

TEST_F(ModelTest, SaysWhatIsWrong) {
  EXPECT_THROW(Model::load("/nowhere/at/all"), Error);
  EXPECT_THROW(model.logits({}), Error);
  EXPECT_THROW(model.logits(std::vector<std::int32_t>{99999}), Error);
  EXPECT_THROW(model.logits(std::vector<std::int32_t>(129, 1)), Error);
  EXPECT_THROW(model.generate("", {}), Error);
}

TEST_F(ModelTest, WithoutATokenizerThereAreStillTokens) {
  const testing::ScratchDirectory bare;
  save_transformer(testing::small_gpt(30), bare.path());
  const Model plain = Model::load(bare.path());
  EXPECT_FALSE(plain.has_tokenizer());
  EXPECT_THROW(plain.encode("text"), Error);
  EXPECT_EQ(plain.predict(std::vector<std::int32_t>{1, 2}, {}, 1).front().text.front(), '#');
}

TEST_F(ModelTest, AModelInMemoryIsTheModelOnDisk) {
  const MappedFile config(directory_->path() / config_file_name);
  const MappedFile weights(directory_->path() / weights_file_name);
  const Transformer in_memory =
      load_transformer(StacksWanted::one, ModelBytes{"memory", config.text(), weights.bytes()});
  const Transformer on_disk = load_transformer(StacksWanted::one, directory_->path());
  EXPECT_TRUE(std::ranges::equal(in_memory.parameters().all(), on_disk.parameters().all()));
}

TEST(Starter, IsThereOrSaysThatItIsNot) {
  if (starter_files()) {
    EXPECT_TRUE(Model::load("starter").has_tokenizer());
  } else {
    try {
      Model::load("starter");
      FAIL() << "loaded a starter that is not there";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
    }
  }
}

}  // namespace
}  // namespace heed
