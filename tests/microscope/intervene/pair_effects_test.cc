#include "microscope/intervene/pair_effects.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/intervene/intervention_text.h"
#include "microscope/toy_pairs.h"
#include "microscope/traces/capture.h"
#include "model/comparison.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::toy_pair;
using testing::toy_pair_architecture;
using testing::toy_pair_shapes;
using testing::toy_translator;
using testing::ToyPairShape;

class PairEffects : public ::testing::TestWithParam<ToyPairShape> {
 protected:
  Transformer model_ = toy_translator(GetParam());
  RecordedPass pass_{model_, toy_pair()};

  std::shared_ptr<Interventions> editor(std::vector<Intervention> interventions) const {
    return std::make_shared<Interventions>(model_.architecture(), std::move(interventions));
  }
  std::shared_ptr<Interventions> changed(const std::string& text, const Change& change) const {
    std::vector<Intervention> interventions;
    for (const InterventionPoint& each : parse_points(model_.architecture(), text)) {
      interventions.push_back({each.point, each.where, change});
    }
    return editor(std::move(interventions));
  }
};

// An encoder sees both ways; a decoder never sees what comes later, to the bit.
TEST_P(PairEffects, LaterSourceTokensMoveEarlierOnesAndLaterTargetTokensDoNot) {
  const TokenInfluence of_source = token_influence(pass_, PairSide::source, 5, 9);
  for (const double change : of_source.encoder) EXPECT_GT(change, 1e-4);
  for (const double change : of_source.decoder) EXPECT_GT(change, 1e-6);
  for (std::int64_t position = 1; position < pass_.positions(); ++position) {
    const TokenInfluence of_target = token_influence(pass_, PairSide::target, position, 9);
    for (const double change : of_target.encoder) EXPECT_EQ(change, 0);
    for (std::int64_t t = 0; t < pass_.positions(); ++t) {
      const double change = of_target.decoder[static_cast<std::size_t>(t)];
      if (t < position) {
        EXPECT_EQ(change, 0) << position << " " << t;
      } else {
        EXPECT_GT(change, 1e-6) << position << " " << t;
      }
    }
  }
}

// Without sight of what comes later, the encoder is the causal stack of the same weights, and later
// tokens move no earlier vector, to the bit.
TEST_P(PairEffects, AnEncoderThatHidesTheFutureIsCausal) {
  Architecture causal = toy_pair_architecture(GetParam());
  causal.stacks[0].block.attention.mask.kind = MaskKind::causal;
  const Transformer other = toy_translator(causal);
  std::vector<Intervention> hidden;
  for (const InterventionPoint& each : pattern_points(model_.architecture(), "encoder")) {
    hidden.push_back({{PointKind::scores, each.point.layer, StackSite::encoder}, {}, SetMask{}});
  }
  const RecordedPass masked(model_, toy_pair(), editor(std::move(hidden)));
  const RecordedPass expected(other, toy_pair());
  EXPECT_LE(testing::relative_error(masked.final_rows(StackSite::encoder).span(),
                                    expected.final_rows(StackSite::encoder).span()),
            1e-5);
  const TokenInfluence influence = token_influence(masked, PairSide::source, 5, 9);
  for (std::size_t t = 0; t < 5; ++t) EXPECT_EQ(influence.encoder[t], 0);
  EXPECT_GT(influence.encoder[5], 1e-4);
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        editor({{{PointKind::cross_pattern, 0, StackSite::decoder}, {}, SetMask{}}});
      },
      "within one text");
}

// A head is off where its columns of the output projection are zero.
TEST_P(PairEffects, AHeadThatIsOffIsAHeadWithoutOutput) {
  struct Case {
    const char* text;
    StackSite site;
    Role role;
  };
  for (const Case& each : {Case{"encoder.L2H1", StackSite::encoder, Role::attention_output},
                           Case{"decoder.L1H1", StackSite::decoder, Role::attention_output},
                           Case{"cross.L1H1", StackSite::decoder, Role::cross_output}}) {
    const std::int64_t layer = each.site == StackSite::encoder ? 2 : 1;
    Transformer without = toy_translator(GetParam());
    const View<float> weight = without.parameters().tensor(
        {.role = each.role, .part = Part::weight, .layer = layer, .site = each.site});
    for (std::int64_t c = 0; c < weight.extent(0); ++c) {
      for (std::int64_t a = 8; a < 16; ++a) weight(c, a) = 0;
    }
    const RecordedPass off(model_, toy_pair(), changed(each.text, SetZero{}));
    const RecordedPass expected(without, toy_pair());
    EXPECT_LE(testing::relative_error(off.final_rows().span(), expected.final_rows().span()), 1e-5)
        << each.text;
    EXPECT_GT(testing::relative_error(off.final_rows().span(), pass_.final_rows().span()), 1e-3)
        << each.text;
  }
}

// z of the query is the sum of the other keys' values.
TEST_P(PairEffects, CutEdgesCarryNothing) {
  const Architecture& architecture = model_.architecture();
  for (const char* const text : {"encoder.L1H2:2>5", "decoder.L1H2:3>1", "cross.L1H2:3>4"}) {
    const HeadEdges edges = parse_edges(text);
    const std::vector<InterventionPoint> patterns = pattern_points(architecture, edges.head);
    ASSERT_EQ(patterns.size(), 1U);
    std::vector<Intervention> one;
    one.push_back({patterns[0].point, patterns[0].where, CutEdges{edges.edges}});
    const RecordedPass cut(model_, toy_pair(), editor(std::move(one)));
    const AttentionSite kind = site_of_pattern(patterns[0].point);
    const auto [query, key] = edges.edges[0];
    const Tensor<float> plane = RecordedAttention(cut).pattern(kind, 1, 2);
    const Tensor<float> before = RecordedAttention(pass_).pattern(kind, 1, 2);
    EXPECT_EQ(plane.view()(query, key), 0);
    EXPECT_GT(before.view()(query, key), 0);
    Point mixed = patterns[0].point, value = mixed;
    mixed.kind = kind == cross_site ? PointKind::cross_mixed_values : PointKind::mixed_values;
    value.kind = kind == cross_site ? PointKind::cross_value : PointKind::value;
    Capture capture(std::vector<Point>{mixed, value});
    cut.replay(capture);
    for (std::int64_t d = 0; d < 8; ++d) {
      double z = 0;
      for (std::int64_t s = 0; s < cut.keys(kind); ++s) {
        if (s != key) {
          z += double{before.view()(query, s)} * capture.at(value).view()(0, s, 2, d);
        }
      }
      EXPECT_NEAR(z, capture.at(mixed).view()(0, query, 2, d), 1e-5) << text;
    }
    const std::vector<PredictionEffect> effects = prediction_effects(pass_, cut);
    ASSERT_EQ(std::ssize(effects), pass_.positions());
    // In the last layer, only the query's own prediction can change.
    for (std::int64_t t = 0; t < pass_.positions(); ++t) {
      const double moved = effects[static_cast<std::size_t>(t)].moved;
      if (kind == encoder_site || t == query) {
        EXPECT_GT(moved, 0) << text << " " << t;
      } else {
        EXPECT_EQ(moved, 0) << text << " " << t;
      }
    }
    EXPECT_EQ(*effects[1].next, toy_pair().target[2]);
  }
}

TEST_P(PairEffects, EditsThatChangeNothingChangeNoBit) {
  for (const char* const text :
       {"encoder.L1H2", "cross.L0", "decoder.L1", "cross.L1H0.pattern", "encoder.L0H1.scores",
        "cross.L1H3.k", "decoder.0.hook_resid_mid", "cross.L0H0.q@2-"}) {
    const RecordedPass same(model_, toy_pair(), changed(text, ScaleBy{1}));
    EXPECT_TRUE(std::ranges::equal(same.final_rows().span(), pass_.final_rows().span())) << text;
    EXPECT_TRUE(std::ranges::equal(same.final_rows(StackSite::encoder).span(),
                                   pass_.final_rows(StackSite::encoder).span()))
        << text;
  }
}

// Step by step with a cache, edited or not: the tokens of full passes.
TEST_P(PairEffects, GreedyTranslationsAreThoseOfFullPasses) {
  const std::vector<std::int32_t> source = toy_pair().source;
  for (const char* const text : {"", "encoder.L1H2", "cross.L1H3.k@3", "decoder.L0H1@2-"}) {
    const std::shared_ptr<Interventions> edits = *text == 0 ? nullptr : changed(text, ScaleBy{-2});
    const GreedyTranslation translation =
        translate_greedily(model_, source, {.max_length = 9, .editor = edits.get()});
    Texts tokens{source, {1}};
    double log_probability = 0;
    for (int step = 0; step < 9; ++step) {
      const RecordedPass full(model_, tokens, edits);
      const std::vector<double> next = full.next_probabilities(full.positions() - 1);
      const auto best = std::ranges::max_element(next);
      log_probability += std::log(*best);
      if (best - next.begin() == 2) break;
      tokens.target.push_back(static_cast<std::int32_t>(best - next.begin()));
    }
    EXPECT_EQ(decoder_input(model_.architecture(), translation.tokens), tokens.target) << text;
    EXPECT_NEAR(translation.log_probability, log_probability, 1e-3) << text;
    EXPECT_EQ(translation.is_finished(), translation.tokens.size() < 9) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PairEffects, ::testing::ValuesIn(toy_pair_shapes()));

TEST(PairInterventionText, NamesTheAttentionOrTheStack) {
  const Architecture architecture = toy_pair_architecture({});
  const auto names = [&](const std::string& text) {
    std::vector<std::string> found;
    for (const InterventionPoint& each : parse_points(architecture, text)) {
      std::string name = point_name(each.point);
      for (const std::int64_t head : each.where.heads) name += fmt::format(" H{}", head);
      for (const std::int64_t neuron : each.where.neurons) name += fmt::format(" N{}", neuron);
      if (each.where.first_position > 0) name += fmt::format(" @{}", each.where.first_position);
      found.push_back(name);
    }
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("encoder.L2H3"), Names{"encoder.2.attn.hook_z H3"});
  EXPECT_EQ(names("decoder.L1H3.pattern@2"), Names{"decoder.1.attn.hook_pattern H3 @2"});
  EXPECT_EQ(names("cross.L1H0.k@5"), Names{"decoder.1.cross_attn.hook_k H0 @5"});
  EXPECT_EQ(names("cross.L1"), Names{"decoder.1.hook_cross_attn_out"});
  EXPECT_EQ(names("decoder.L1.cross@3"), Names{"decoder.1.hook_cross_attn_out @3"});
  EXPECT_EQ(names("decoder.L1N9"), Names{"decoder.1.mlp.hook_post N9"});
  EXPECT_EQ(names("decoder.L0"), (Names{"decoder.0.hook_attn_out", "decoder.0.hook_mlp_out",
                                        "decoder.0.hook_cross_attn_out"}));
  EXPECT_EQ(names("encoder.L0"), (Names{"encoder.0.hook_attn_out", "encoder.0.hook_mlp_out"}));
  EXPECT_EQ(names("encoder.resid_pre1@4"), Names{"encoder.1.hook_resid_pre @4"});
  EXPECT_EQ(names("cross.z"),
            (Names{"decoder.0.cross_attn.hook_z", "decoder.1.cross_attn.hook_z"}));
  EXPECT_EQ(pattern_points(architecture, "encoder").size(), 3U);
  EXPECT_EQ(pattern_points(architecture, "cross").size(), 2U);
  EXPECT_EQ(point_name(pattern_points(architecture, "decoder.L1").at(0).point),
            "decoder.1.attn.hook_pattern");

  const auto refused = [&](const std::string& text, const std::string& part) {
    expect_error(
        ErrorCode::invalid_argument, [&] { parse_points(architecture, text); }, part);
  };
  refused("L1H2", "encoder.L1H2, decoder.L1H2");
  refused("cross.L2H0", "layers 0 to 1");
  refused("encoder.L3H0", "layers 0 to 2");
  refused("cross.L1H4", "heads 0 to 3");
  refused("cross.L1N4", "neurons belong to a stack");
  refused("cross.L1.mlp", "no such branch");
  refused("decoder.L1H0@x", "position range");
  refused("encoder.nothing", "did you mean");
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        const Point pattern = pattern_points(architecture, "cross.L1H0")[0].point;
        Interventions(architecture, {{pattern, {}, CutEdges{{{3, 24}}}}});
      },
      "positions 0 to 23");
}

}  // namespace
}  // namespace heed
