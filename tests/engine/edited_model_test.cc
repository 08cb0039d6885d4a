#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/intervention.h"
#include "support/small_model.h"

namespace heed {
namespace {

using ::testing::HasSubstr;

class EditedModels : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory = std::make_unique<testing::ScratchDirectory>();
    testing::write_small_model(directory->path());
    model = std::make_unique<Model>(Model::load(directory->path().string()));
  }
  static void TearDownTestSuite() {
    model.reset();
    directory.reset();
  }

  static std::vector<float> logits(const std::vector<Edit>& edits) {
    return EditedModel(*model, edits).logits(tokens);
  }
  static std::string refusal(Edit edit) {
    try {
      EditedModel(*model, {std::move(edit)});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "nothing was refused";
  }

  static inline const std::vector<std::int32_t> tokens{5, 17, 4, 9, 5};
  static inline const std::vector<std::int32_t> others{6, 3, 11, 9, 2};
  static inline const Texts text{.target = others};
  static inline std::unique_ptr<testing::ScratchDirectory> directory;
  static inline std::unique_ptr<Model> model;
};

TEST_F(EditedModels, ChangeNothingWithoutAnEdit) {
  EXPECT_EQ(logits({}), model->logits(tokens));
  EXPECT_EQ(logits({{"L1H2", ScaleBy{1.0F}}}), model->logits(tokens));
  EXPECT_EQ(logits({{"L1H2@9-", SetZero{}}}), model->logits(tokens));
  EXPECT_EQ(logits({{"L1@1-2", SetZero{}, 3}}), model->logits(tokens));
}

TEST_F(EditedModels, EveryChangeIsSeenWhereItWasMade) {
  const auto traced = [](const std::string& point, const Edit& edit) {
    return EditedModel(*model, {edit}).trace(tokens, {.points = {point}}).arrays.at(0).values;
  };
  const auto plain = [](const std::string& point, const std::vector<std::int32_t>& read) {
    return model->trace(read, TraceRequest{.points = {point}}).arrays.at(0).values;
  };
  const std::string mid = "blocks.1.hook_resid_mid";
  const std::vector<float> was = plain(mid, tokens), other = plain(mid, others);
  const std::size_t width = 24, at = 3 * width + 7;  // position 3, channel 7
  std::vector<float> vector(width, 0.0F);
  vector[7] = 2.5F;
  EXPECT_EQ(traced(mid, {mid, SetZero{}})[at], 0.0F);
  EXPECT_EQ(traced(mid, {mid, ScaleBy{-2.0F}})[at], -2.0F * was[at]);
  EXPECT_EQ(traced(mid, {mid, AddVector{vector}})[at], was[at] + 2.5F);
  EXPECT_EQ(traced(mid, {mid, SetRow{vector}})[at], 2.5F);
  EXPECT_EQ(traced(mid, {mid, TakeFromText{text}})[at], other[at]);
  EXPECT_EQ(traced(mid, {mid + "@3", TakeFromText{text}})[at - width], was[at - width]);
  EXPECT_EQ(
      traced(mid, {mid, TakeFrom{model->trace(others, TraceRequest{.points = {mid}}).at(mid)}})[at],
      other[at]);
  double mean = 0, away = 0;
  for (std::size_t t = 0; t < 5; ++t) {
    mean += other[t * width + 7] / 5;
    away += was[t * width + 7] / 5;
  }
  EXPECT_NEAR(traced(mid, {mid, SetMean{{text}}})[at], mean, 1e-6);
  EXPECT_NEAR(traced(mid, {mid, SteerBy{3.0F, text, {.target = tokens}}})[at],
              was[at] + 3 * (mean - away), 1e-5);
}

TEST_F(EditedModels, PatternsAreFrozenAndCut) {
  const auto pattern = [](const std::vector<Edit>& edits, const std::vector<std::int32_t>& read) {
    return EditedModel(*model, edits)
        .trace(read, {.points = {"pattern1"}, .heads = {2}})
        .arrays.at(0)
        .values;
  };
  for (const char* where : {"L1H2", "L1", "L1H2.pattern", "pattern1"}) {
    const Edit edit = std::string(where) == "pattern1" ? Edit{where, TakeFromText{text}}
                                                       : Edit{where, FreezePattern{text}};
    EXPECT_EQ(pattern({edit}, tokens), pattern({}, others)) << where;
  }
  const auto whole = pattern({}, tokens);
  const auto cut = pattern({{"L1H2", CutEdges{{{4, 1}}, CutEdges::Rest::renormalised}}}, tokens);
  EXPECT_EQ(cut[4 * 5 + 1], 0.0F);
  EXPECT_NEAR(cut[4 * 5 + 2], whole[4 * 5 + 2] / (1 - whole[4 * 5 + 1]), 1e-6);
}

TEST_F(EditedModels, AHeadOfAPointTakesItsOwnPartOfAVector) {
  // What adds to every head the difference of two texts' means moves a head as what adds it there.
  const auto z = [](const std::string& where, std::vector<std::int64_t> heads) {
    return EditedModel(*model, {{where, SteerBy{2.0F, text}}})
        .trace(tokens, {.points = {"v0"}, .heads = std::move(heads)})
        .arrays.at(0)
        .values;
  };
  EXPECT_EQ(z("v0", {1}), z("L0H1.v", {1}));
  EXPECT_NE(z("v0", {2}), z("L0H1.v", {2}));
}

TEST_F(EditedModels, GenerateAndTraceStepByStep) {
  Model::GenerateOptions greedy{.max_new_tokens = 6};
  greedy.sampling.temperature = 0;
  const auto generated = [&](const std::vector<Edit>& edits) {
    return EditedModel(*model, edits).generate(tokens, greedy).tokens;
  };
  const auto plain = model->generate(tokens, greedy).tokens;
  EXPECT_EQ(generated({}), plain);
  const auto late = generated({{"blocks.*.hook_resid_post", SetZero{}, std::ssize(tokens) + 2}});
  ASSERT_EQ(late.size(), 6U);
  // The token of step 2 is the first that is read changed; the one after it is drawn from that.
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + 3, late.begin()));
  EXPECT_NE(late, plain);
  const Trace trace = EditedModel(*model, {{"L0@6-", SetZero{}}})
                          .trace_generation(tokens, 3, {.points = {"mlp_out0"}});
  const TracedArray& out = trace.arrays.at(0);
  ASSERT_EQ(out.shape[1], 8);
  EXPECT_NE(out.values[5 * 24], 0.0F);
  EXPECT_EQ(out.values[6 * 24], 0.0F);
}

TEST_F(EditedModels, GradientsAreThoseOfTheChangedPass) {
  const GradientTarget target{.logits = {{.position = -1, .token = 7}}};
  const auto gradient = [&](const std::vector<Edit>& edits) {
    return EditedModel(*model, edits)
        .trace(tokens, {.points = {"blocks.1.hook_attn_out_grad"}}, target)
        .arrays.at(0)
        .values;
  };
  AddVector added{std::vector<float>(24)};
  for (std::size_t c = 0; c < 24; ++c) added.vector[c] = static_cast<float>(c);
  EXPECT_NE(gradient({{"L1.mlp", added}}), gradient({}));
  // A scaled half of a block would hand back three times what backward gives it.
  EXPECT_THROW(gradient({{"L1.mlp", ScaleBy{3.0F}}}), Error);
}

TEST_F(EditedModels, RefuseWhatCannotBe) {
  EXPECT_THAT(refusal({"blocks.1.hook_resid_prä", SetZero{}}), HasSubstr("hook_resid_pre"));
  EXPECT_THAT(refusal({"L1H7", SetZero{}}), HasSubstr("'L1H2'"));
  EXPECT_THAT(refusal({"L1", AddVector{{1, 2}}}), HasSubstr("expected 24"));
  EXPECT_THAT(refusal({"L1H0", AddVector{{1, 2}}}), HasSubstr("expected 8"));
  EXPECT_THAT(refusal({"L1N3", FreezePattern{text}}), HasSubstr("no attention pattern"));
  EXPECT_THAT(refusal({"embed", FreezePattern{text}}), HasSubstr("no attention pattern"));
  EXPECT_THAT(refusal({"L1.mlp", CutEdges{{{2, 1}}}}), HasSubstr("no attention pattern"));
  EXPECT_THAT(refusal({"L1H0", TakeFromText{{.source = others, .target = others}}}),
              HasSubstr("a source of 5 tokens"));
  EXPECT_THAT(refusal({"L1H0", SetMask{SetMask::Kind::causal}}), HasSubstr("already"));
  EXPECT_THAT(refusal({"L1H0", CutEdges{{{1, 2}}}}), HasSubstr("from 1 to 2"));
  EXPECT_THAT(refusal({"pattern1", SetMean{{text}}}), HasSubstr("no mean"));
  EXPECT_THAT(refusal({"L1H0", SetMean{}}), HasSubstr("at least one"));
  EXPECT_THAT(refusal({"L1H0", TakeFromText{}}), HasSubstr("no tokens"));
  EXPECT_THAT(refusal({"L1", SetZero{}, -1}), HasSubstr("first_position is -1"));
  TracedArray values =
      model->trace(others, TraceRequest{.points = {"z1"}, .heads = {1}}).arrays.at(0);
  EXPECT_THAT(refusal({"z1", TakeFrom{values}}), HasSubstr("expected (1, T, 3, 8)"));
  EXPECT_THAT(refusal({"z0", TakeFrom{values}}), HasSubstr("cannot replace"));
  values.values = std::vector<float>(values.values.begin(), values.values.end() - 1);
  EXPECT_THAT(refusal({"z1", TakeFrom{values}}), HasSubstr("expected the number of its shape"));
}

}  // namespace
}  // namespace heed
