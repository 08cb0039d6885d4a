#include "microscope/traces/recorded_pass.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/attention/text_words.h"
#include "microscope/explain/logit_lens.h"
#include "microscope/families.h"
#include "microscope/intervene/intervention.h"
#include "microscope/toy_pairs.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "model/comparison.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::relative_error;
using testing::toy_pair;
using testing::toy_pair_shapes;
using testing::toy_translator;
using testing::ToyPairShape;

class PairPassShapes : public ::testing::TestWithParam<ToyPairShape> {
 protected:
  Transformer model_ = toy_translator(GetParam());
  RecordedPass pass_{model_, toy_pair()};

  Tensor<float> values(const std::string& name) const {
    const std::vector<Point> points = points_named(name, model_.architecture());
    EXPECT_EQ(points.size(), 1U) << name;
    Capture capture(points);
    pass_.replay(capture);
    return capture.take(points.front());
  }

  // What the parameters add to a score for a key `distance` positions after its query.
  double bias(AttentionSite kind, std::int64_t head, std::int64_t distance) const {
    const AttentionSpecification& attention = attention_of(model_.architecture(), kind);
    if (attention.positions != PositionKind::relative) return 0;
    const StackSite site = kind == encoder_site ? StackSite::encoder : StackSite::decoder;
    return model_.parameters().tensor({.role = Role::position_bias, .site = site})(
        attention.relative.bucket(distance), head);
  }
};

// What is read lazily against softmax(query · key) and pattern · value of the observed points.
TEST_P(PairPassShapes, AttentionIsReadAsThePassUsedIt) {
  for (const AttentionSite kind : sites_of(model_.architecture())) {
    RecordedAttention recorded(pass_);
    for (std::int64_t layer = 0; layer < model_.architecture().of(kind.stack).layers; ++layer) {
      const LazyAttention& attention = recorded.layer(kind, layer);
      const std::string prefix = kind == encoder_site ? fmt::format("encoder.{}.attn.", layer)
                                 : kind == decoder_site
                                     ? fmt::format("decoder.{}.attn.", layer)
                                     : fmt::format("decoder.{}.cross_attn.", layer);
      const Tensor<float> pattern = values(prefix + "hook_pattern");
      const Tensor<float> scores = values(prefix + "hook_attn_scores");
      const Tensor<float> value = values(prefix + "hook_v"), mixed = values(prefix + "hook_z");
      const Tensor<float> query = values(prefix + "hook_q"), key = values(prefix + "hook_k");
      ASSERT_EQ(pattern.shape(), (Shape{1, 4, pass_.queries(kind), pass_.keys(kind)}));
      for (std::int64_t head = 0; head < 4; ++head) {
        const AttentionRegion whole{.layer = layer,
                                    .head = head,
                                    .query_end = pass_.queries(kind),
                                    .key_end = pass_.keys(kind)};
        const Tensor<float> read = attention.region(whole);
        for (std::int64_t t = 0; t < pass_.queries(kind); ++t) {
          double sum = 0, from_scores = 0;
          for (std::int64_t s = 0; s < pass_.keys(kind); ++s) {
            EXPECT_NEAR(read.view()(t, s), pattern.view()(0, head, t, s), 1e-6);
            sum += read.view()(t, s);
            from_scores += std::exp(double{scores.view()(0, head, t, s)});
          }
          // The scores from their definition: query · key · scale, and the bias of the distance.
          for (std::int64_t s = 0; s < attention.visible_keys(layer, t).end; ++s) {
            double product = 0;
            for (std::int64_t d = 0; d < 8; ++d) {
              product += double{query.view()(0, t, head, d)} * key.view()(0, s, head, d);
            }
            const double score = product * attention_of(model_.architecture(), kind).score_scale() +
                                 bias(kind, head, s - t);
            EXPECT_NEAR(scores.view()(0, head, t, s), score, 1e-5 * (1 + std::abs(score)));
            AttentionRegion one = whole;
            one.query_begin = t, one.query_end = t + 1, one.key_begin = s, one.key_end = s + 1;
            one.values = AttentionValues::scores;
            EXPECT_NEAR(attention.region(one).view()(0, 0), score, 1e-5 * (1 + std::abs(score)));
          }
          EXPECT_NEAR(sum, 1, 1e-5);
          EXPECT_NEAR(read.view()(t, 0), std::exp(scores.view()(0, head, t, 0)) / from_scores,
                      1e-5);
          for (std::int64_t d = 0; d < 8; ++d) {
            double z = 0;
            for (std::int64_t s = 0; s < pass_.keys(kind); ++s) {
              z += double{read.view()(t, s)} * value.view()(0, s, head, d);
            }
            EXPECT_NEAR(z, mixed.view()(0, t, head, d), 1e-5);
          }
          EXPECT_EQ(attention.row(layer, head, t).size(),
                    static_cast<std::size_t>(attention.visible_keys(layer, t).end));
        }
        EXPECT_EQ(std::ssize(attention.column(layer, head, pass_.keys(kind) - 1)),
                  pass_.queries(kind));
      }
    }
  }
}

// The encoder sees both ways: no row of it leaves out the last key; the decoder never sees ahead.
TEST_P(PairPassShapes, TheMaskIsThatOfTheKind) {
  for (const AttentionSite kind : sites_of(model_.architecture())) {
    for (std::int64_t head = 0; head < 4; ++head) {
      const std::vector<float> first =
          RecordedAttention(pass_).layer(kind, 0).column(0, head, pass_.keys(kind) - 1);
      if (kind == decoder_site) {
        EXPECT_EQ(first.front(), 0);
      } else {
        EXPECT_GT(first.front(), 0);
      }
    }
  }
}

TEST_P(PairPassShapes, LogitsAreThoseOfTheLoss) {
  const Texts tokens = toy_pair();
  const std::vector<std::int64_t> sources{0, pass_.sources()}, targets{0, pass_.positions()};
  std::vector<std::int32_t> next(tokens.target.begin() + 1, tokens.target.end());
  next.push_back(2);
  PairBuffers buffers(model_.architecture(), Keep::one_block);
  const LossSum loss = model_.loss(
      {.source = {tokens.source, sources}, .target = {tokens.target, targets}, .next = next},
      buffers);
  double sum = 0;
  for (std::int64_t t = 0; t < pass_.positions(); ++t) {
    sum -= std::log(pass_.next_probabilities(t)[static_cast<std::size_t>(next[t])]);
  }
  EXPECT_NEAR(sum, loss.sum, 1e-4 * std::abs(loss.sum));
}

TEST_P(PairPassShapes, TheLensEndsWithTheModelsOwnPrediction) {
  const LogitLens lens = look_through_layers(pass_, {.top = 3, .followed = {33}, .positions = {2}});
  ASSERT_EQ(lens.points.size(), 3U);
  EXPECT_EQ(point_name(lens.points.front()), "decoder.0.hook_resid_pre");
  const std::vector<double> own = pass_.next_probabilities(2);
  const LensCell& last = lens.at(2, 0);
  EXPECT_NEAR(last.probability, own[33], 1e-6);
  EXPECT_NEAR(last.divergence, 0, 1e-6);
  for (const LensToken& token : last.top) {
    EXPECT_NEAR(token.probability, own[static_cast<std::size_t>(token.token)], 1e-6);
  }
  EXPECT_GE(last.top[0].probability, last.top[1].probability);
  expect_error(
      ErrorCode::invalid_argument, [&] { look_through_layers(pass_, {.positions = {5}}); },
      "position 5", "5 tokens");
}

INSTANTIATE_TEST_SUITE_P(Shapes, PairPassShapes, ::testing::ValuesIn(toy_pair_shapes()));

TEST(RecordedPass, TracesAreCutToWhatIsAsked) {
  const Transformer model = toy_translator();
  const RecordedPass pass(model, toy_pair());
  const Trace trace =
      trace_texts(model, toy_pair(),
                  {.points = {"cross.pattern", "cross.k1", "encoder.*.hook_resid_pre", "logits"},
                   .layers = {0, 1},
                   .heads = {3, 1},
                   .positions = {-1},
                   .source_positions = {0, 2}});
  std::vector<std::string> names;
  for (const TracedArray& array : trace.arrays) names.push_back(array.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "encoder.0.hook_resid_pre", "encoder.1.hook_resid_pre",
                       "decoder.0.cross_attn.hook_pattern", "decoder.1.cross_attn.hook_k",
                       "decoder.1.cross_attn.hook_pattern", "unembed.hook_out"}));
  using Extents = std::vector<std::int64_t>;
  EXPECT_EQ(trace.arrays[0].shape, (Extents{1, 2, 32}));
  EXPECT_EQ(trace.arrays[2].shape, (Extents{1, 2, 1, 7}));
  EXPECT_EQ(trace.arrays[3].shape, (Extents{1, 2, 2, 8}));
  EXPECT_EQ(trace.arrays[5].shape, (Extents{1, 1, 50}));
  const std::vector<float> row = RecordedAttention(pass).layer(cross_site, 1).row(1, 3, 4);
  for (std::int64_t s = 0; s < 7; ++s) {
    EXPECT_NEAR(trace.arrays[4].values.data()[7 + s], row[static_cast<std::size_t>(s)], 1e-6);
  }
}

TEST(RecordedPass, TilesAndWordsAreOfTheSamePlane) {
  const Transformer model = toy_translator();
  const RecordedPass pass(model, toy_pair());
  RecordedAttention attention(pass);
  const Tensor<float> plane = attention.pattern(cross_site, 1, 2);
  const Tensor<float> tile = attention.tile(cross_site, {.layer = 1, .head = 2});
  EXPECT_TRUE(testing::same_bits(plane, tile));
  EXPECT_EQ(attention.levels(cross_site), 1);
  const Tensor<float> pooled = attention.region(
      cross_site,
      {.layer = 1, .head = 2, .query_end = 5, .key_end = 7, .pool = 4, .pooling = Pooling::max});
  EXPECT_EQ(pooled.shape(), (Shape{2, 2}));
  EXPECT_EQ(pooled.view()(1, 1), *std::ranges::max_element(plane.view()[4].span().subspan(4)));

  const std::vector<TextWord> source{{"a", 0, 2}, {"b", 2, 6}, {"", 6, 7}};
  const std::vector<TextWord> target{{"", 0, 1}, {"x", 1, 3}, {"y", 3, 5}};
  const Tensor<float> read = by_words(plane, target, source, WordRow::read);
  const Tensor<float> written = by_words(plane, target, source, WordRow::written);
  EXPECT_NEAR(read.view()(1, 0), plane.view()(2, 0) + plane.view()(2, 1), 1e-6);
  EXPECT_NEAR(written.view()(2, 2), (plane.view()(2, 6) + plane.view()(3, 6)) / 2, 1e-6);
  EXPECT_EQ(written.view()(0, 1), read.view()(0, 1));
}

TEST(RecordedPass, RefusesWhatIsNotThere) {
  const Transformer model = toy_translator();
  expect_error(
      ErrorCode::invalid_argument, [&] { RecordedPass(model, {.source = {}, .target = {1}}); },
      "the source");
  expect_error(
      ErrorCode::invalid_argument,
      [&] { RecordedPass(model, {.source = {4}, .target = std::vector<std::int32_t>(25, 4)}); },
      "the target", "24");
  const RecordedPass pass(model, toy_pair());
  const auto refused = [&](const std::string& point, ErrorCode code, const std::string& part) {
    expect_error(
        code, [&] { trace_texts(model, toy_pair(), {.points = {point}}); }, part);
  };
  refused("encoder.0.cross_attn.hook_q", ErrorCode::invalid_argument, "did you mean");
  refused("blocks.0.attn.hook_q", ErrorCode::invalid_argument, "did you mean");
  refused("decoder.9.hook_resid_pre", ErrorCode::invalid_argument, "did you mean");
  expect_error(
      ErrorCode::invalid_argument,
      [&] { trace_texts(model, toy_pair(), {.points = {"logits"}, .positions = {5}}); },
      "target position 5", "positions 0 to 4");
  expect_error(
      ErrorCode::invalid_argument,
      [&] { trace_texts(model, toy_pair(), {.points = {"logits"}, .source_positions = {-8}}); },
      "source position -8", "positions 0 to 6");
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        RecordedAttention(pass).region(cross_site,
                                       {.layer = 0, .head = 4, .query_end = 1, .key_end = 1});
      },
      "head 4");
}

// Points of a pass in memory against those that a probe is shown while it runs.
void expect_replayed(const Transformer& model, const Texts& texts, std::shared_ptr<Editor> editor,
                     Keep keep) {
  const std::vector<Point> points = all_points(model.architecture());
  Capture shown(points);
  const RecordedPass live(model, texts, editor, {.keep = Keep::one_block, .observer = &shown});
  const RecordedPass pass(model, texts, editor, {.keep = keep});
  Capture replayed(points);
  pass.replay(replayed);
  for (const Point& point : points) {
    EXPECT_TRUE(testing::same_bits(shown.at(point), replayed.at(point))) << point_name(point);
    EXPECT_TRUE(testing::same_bits(shown.at(point), pass.computed(point))) << point_name(point);
  }
  EXPECT_TRUE(testing::same_bits(live.logits(), pass.logits()));
}

// Of a decoder of every family: one text, edited and not.
TEST(RecordedPass, ReplaysPassesOverOneText) {
  const Texts text{.source = {}, .target = testing::random_tokens(17, 61, 3)};
  for (const testing::ToyFamily& family : testing::every_toy_family(32)) {
    SCOPED_TRACE(family.name);
    const Transformer model = testing::toy_transformer(family.stack);
    expect_replayed(model, text, nullptr, Keep::every_block);
    expect_replayed(model, text, nullptr, Keep::points);
    for (const Point point : {Point{PointKind::residual_pre, 1}, Point{PointKind::neurons_post, 0},
                              Point{PointKind::pattern, 1}}) {
      const auto editor = std::make_shared<Interventions>(
          model.specification(), std::vector<Intervention>{{point, {}, ScaleBy{0.5F}}});
      expect_replayed(model, text, editor, Keep::every_block);
    }
  }
}

// Two editors of a model are one that both the model and the pass know.
TEST(RecordedPass, AppliesTheEditorsOfAModelOnce) {
  const Transformer plain = testing::random_transformer(testing::small_config());
  const auto scale = [&](std::int64_t layer) {
    return std::make_shared<Interventions>(
        plain.specification(),
        std::vector<Intervention>{{{PointKind::residual_pre, layer}, {}, ScaleBy{0.5F}}});
  };
  const Transformer model = plain.with_editor(scale(0)).with_editor(scale(1));
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 4);
  const StackActivations activations(model.specification(), 1, 9, Keep::one_block);
  model.forward({tokens.data(), {1, 9}}, {.sequences = {1, 9}}, activations);
  const RecordedPass pass(model, {.source = {}, .target = tokens});
  EXPECT_EQ(relative_error(pass.final_rows().span(), activations.unembedding_in().span()), 0);
}

TEST_P(PairPassShapes, ReplaysWhatAProbeOfThePassSees) {
  for (const Keep keep : {Keep::every_block, Keep::points}) {
    expect_replayed(model_, toy_pair(), nullptr, keep);
  }
}

// An edit of what a block reads leaves what the block before it left, although both are in the same
// memory; and neurons are edited wherever they are computed.
TEST_P(PairPassShapes, ReplaysEditedPasses) {
  const Architecture& architecture = model_.architecture();
  for (const char* const name :
       {"encoder.1.hook_resid_pre", "decoder.1.hook_resid_pre", "decoder.0.mlp.hook_post",
        "decoder.0.attn.hook_pattern", "decoder.1.cross_attn.hook_attn_scores",
        "encoder.0.hook_mlp_out"}) {
    const Point point = points_named(name, architecture).at(0);
    const auto editor = std::make_shared<Interventions>(
        architecture, std::vector<Intervention>{{point, {}, ScaleBy{0.5F}}});
    for (const Keep keep : {Keep::every_block, Keep::points}) {
      SCOPED_TRACE(name);
      expect_replayed(model_, toy_pair(), editor, keep);
    }
  }
}

// The gradient of a logit, against the change of the logit by a small step of the embedding of the
// first word of the source: to first order, with the error of a step of 1e-2 and of 24 bits.
TEST_P(PairPassShapes, GradientsOfPointsPassThroughBothStacks) {
  const Texts texts = toy_pair();
  const GradientTarget target{.logits = {{.position = -1, .token = 33}}};
  const Trace trace =
      trace_texts(model_, texts,
                  {.points = {"encoder.0.hook_resid_pre_grad"}, .source_positions = {0}}, target);
  const std::span<const float> gradient(trace.arrays.at(0).values.begin(), 32);
  double squares = 0;
  for (const float g : gradient) squares += double{g} * g;
  ASSERT_GT(squares, 1e-8);
  const auto logit = [&](double step) {
    Tensor<float> added(Shape{32});
    for (std::size_t c = 0; c < 32; ++c) {
      added[static_cast<std::int64_t>(c)] =
          static_cast<float>(step * gradient[c] / std::sqrt(squares));
    }
    const Point point{PointKind::residual_pre, 0, StackSite::encoder};
    const auto editor = std::make_shared<Interventions>(
        model_.architecture(),
        std::vector<Intervention>{{point,
                                   {.first_position = 0, .last_position = 0},
                                   AddVector{{added.span().begin(), added.span().end()}}}});
    const RecordedPass pass(model_, texts, editor);
    return double{pass.logits(4, 5).view()(0, 33)};
  };
  const double slope = (logit(1e-2) - logit(-1e-2)) / 2e-2;
  EXPECT_NEAR(slope, std::sqrt(squares), 1e-2 * std::sqrt(squares) + 1e-4);
}

}  // namespace
}  // namespace heed
