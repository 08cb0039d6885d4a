#include <gtest/gtest.h>

#include <atomic>

#include "base/expect_error.h"
#include "engine/loaded_model.h"
#include "heed/activations.h"
#include "heed/weights.h"
#include "support/small_model.h"
#include "support/small_translator_files.h"

namespace heed {
namespace {

using testing::expect_error;

class TranslatorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new testing::ScratchDirectory;
    testing::write_small_translator(directory_->path());
  }
  static void TearDownTestSuite() { delete directory_; }
  static std::string path() { return directory_->path().string(); }

  static inline testing::ScratchDirectory* directory_ = nullptr;
};

TEST_F(TranslatorTest, TranslatesAsTheModelInMemory) {
  const Translator translator = Translator::load(path());
  const std::vector<std::string> texts{"the dog sees", "a bird"};
  const auto found = translator.translate(texts, {.beams = 4, .n_best = 3});
  const TranslationTokenizers tokenizers = testing::small_joint_vocabulary();
  const Transformer model = testing::small_translator(tokenizers);
  SourceTokens sources;
  for (const std::string& text : texts) {
    sources.add(encode_source(model.architecture(), *tokenizers.source, text, "text"));
  }
  const auto expected =
      translate_tokens(model, *tokenizers.target, sources, {.beams = 4, .n_best = 3});
  ASSERT_EQ(found.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i].source, translator.encode(texts[i]));
    ASSERT_EQ(found[i].hypotheses.size(), 3U);
    for (std::size_t k = 0; k < 3; ++k) {
      const Translator::Hypothesis& hypothesis = found[i].hypotheses[k];
      EXPECT_EQ(hypothesis.tokens, expected[i][k].tokens);
      EXPECT_EQ(hypothesis.score, expected[i][k].score);
      EXPECT_EQ(hypothesis.log_probability, expected[i][k].log_probability);
      EXPECT_EQ(hypothesis.finished, expected[i][k].finished);
      EXPECT_EQ(hypothesis.text, translator.decode(hypothesis.tokens));
    }
    EXPECT_TRUE(found[i].cross_attention.empty());
  }
  const auto alone = translator.translate("a bird", {.beams = 4, .n_best = 3});
  EXPECT_EQ(alone[0].tokens, found[1].hypotheses[0].tokens);
  EXPECT_EQ(alone[0].score, found[1].hypotheses[0].score);
}

TEST_F(TranslatorTest, ShowsWhatEachTokenAttendedTo) {
  const Translator translator = Translator::load(path());
  const std::vector<std::string> texts{"the dog sees"};
  const auto found = translator.translate(texts, {.alignment = true}).front();
  const auto target = std::ssize(found.hypotheses[0].tokens), source = std::ssize(found.source);
  EXPECT_EQ(found.cross_attention.shape(), (std::vector<std::int64_t>{1, 2, target, source}));
  EXPECT_EQ(translator.source_pieces(found.source).size(), found.source.size());
  EXPECT_EQ(translator.target_pieces(std::vector<std::int32_t>{99999}).front(), "#99999");
}

TEST_F(TranslatorTest, LoadsInEveryTypeOfWeightsAndCache) {
  for (const WeightType weights :
       {WeightType::f32, WeightType::bf16, WeightType::int8, WeightType::int4}) {
    for (const KeyValueType cache : {KeyValueType::f32, KeyValueType::bf16, KeyValueType::int8}) {
      const Translator translator = Translator::load(path(), {.weights = weights, .cache = cache});
      EXPECT_FALSE(translator.translate("the dog", {.max_length = 5})[0].tokens.empty());
    }
  }
}

TEST_F(TranslatorTest, StopsAndReportsProgress) {
  const Translator translator = Translator::load(path());
  std::vector<std::int64_t> done;
  translator.translate("the dog", {.progress = [&](std::int64_t now, std::int64_t texts) {
                         EXPECT_EQ(texts, 1);
                         done.push_back(now);
                       }});
  EXPECT_EQ(done, (std::vector<std::int64_t>{0, 1}));
  const std::atomic<bool> stop = true;
  expect_error(
      ErrorCode::interrupted, [&] { translator.translate("the dog", {.stop = &stop}); }, "stopped");
}

TEST_F(TranslatorTest, NamesTheTextThatIsWrong) {
  const Translator translator = Translator::load(path());
  const std::vector<std::string> texts{"the dog", " "};
  expect_error(
      ErrorCode::invalid_argument, [&] { translator.translate(texts); }, "text 2 is empty");
  expect_error(
      ErrorCode::invalid_argument, [&] { translator.translate(""); }, "the text is empty");
  expect_error(
      ErrorCode::invalid_argument, [&] { translator.translate("a", {.n_best = 9}); },
      "the number of hypotheses is 9");
}

// Each kind of model is refused where the other is expected, with the command that runs it.
TEST_F(TranslatorTest, ModelsOfTheOtherKindAreRefused) {
  EXPECT_TRUE(is_translator(path()));
  EXPECT_FALSE(is_translator("starter"));
  expect_error(
      ErrorCode::unsupported, [] { load_model(path()); }, "is a translator", "heed translate -m");
  expect_error(
      ErrorCode::unsupported, [] { load_translator("starter"); }, "'starter' has no encoder",
      "heed generate -m starter");
  const testing::ScratchDirectory other;
  testing::write_small_model(other.path());
  EXPECT_FALSE(is_translator(other.path().string()));
  expect_error(
      ErrorCode::unsupported, [&] { load_translator(other.path().string()); }, "has no encoder");
  expect_error(
      ErrorCode::not_found, [] { load_translator("/nowhere"); }, "/nowhere");
}

// Either kind is a Model; what is of the other kind says so.
TEST_F(TranslatorTest, IsAModelThatRefusesWhatIsOfOneText) {
  const Model model = Model::load(path());
  EXPECT_TRUE(model.is_translator());
  EXPECT_EQ(model.architecture().layers, model.architecture("decoder").layers);
  EXPECT_EQ(model.architecture("encoder").parameters, model.architecture().parameters);
  const std::vector<std::int32_t> text{5, 6};
  const std::string refused = "is a translator";
  expect_error(
      ErrorCode::unsupported, [&] { model.logits(text); }, refused);
  expect_error(
      ErrorCode::unsupported, [&] { model.generate(text, {}); }, refused);
  expect_error(
      ErrorCode::unsupported, [&] { model.dimensions(); }, refused);
  expect_error(
      ErrorCode::unsupported, [&] { weight_names(model); }, refused);
  expect_error(
      ErrorCode::unsupported, [&] { run(model, TokenBatch{.tokens = text}); }, refused);

  const testing::ScratchDirectory other;
  testing::write_small_model(other.path());
  const Model decoder = Model::load(other.path().string());
  EXPECT_FALSE(decoder.is_translator());
  expect_error(
      ErrorCode::unsupported, [&] { decoder.translate("the dog"); }, "has no encoder");
  expect_error(
      ErrorCode::unsupported, [&] { run(decoder, {.tokens = text, .sources = text}); },
      "has no encoder");
  expect_error(
      ErrorCode::invalid_argument, [&] { decoder.architecture("encoder"); }, "the only one");
}

TEST_F(TranslatorTest, LoadsAsAModelOfEitherKind) {
  const LoadedModel model = load_model(path(), {}, StacksWanted::any);
  ASSERT_TRUE(model.is_translator());
  ASSERT_NE(model.tokenizer_of(PairSide::source), nullptr);
  ASSERT_NE(model.tokenizer_of(PairSide::target), nullptr);
  EXPECT_EQ(model.stack(PairSide::source).role, StackRole::encoder);
  EXPECT_EQ(model.directory, std::filesystem::path(path()));
  const testing::ScratchDirectory other;
  testing::write_small_model(other.path());
  const LoadedModel decoder = load_model(other.path().string(), {}, StacksWanted::any);
  EXPECT_FALSE(decoder.is_translator());
  EXPECT_EQ(decoder.tokenizer_of(PairSide::source), nullptr);
}

}  // namespace
}  // namespace heed
