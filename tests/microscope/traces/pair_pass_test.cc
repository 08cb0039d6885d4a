#include "microscope/traces/pair_pass.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "microscope/attention/pair_attention.h"
#include "microscope/explain/pair_lens.h"
#include "microscope/intervene/intervention.h"
#include "microscope/toy_pairs.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/pair_trace.h"
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
  PairPass pass_{model_, toy_pair()};

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
    const LazyAttention& attention = pass_.attention(kind);
    for (std::int64_t layer = 0; layer < model_.architecture().of(kind.stack).layers; ++layer) {
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
      const std::vector<float> first = pass_.attention(kind).column(0, head, pass_.keys(kind) - 1);
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
  const std::vector<std::int64_t> sources{0, pass_.sources()}, targets{0, pass_.targets()};
  std::vector<std::int32_t> next(tokens.target.begin() + 1, tokens.target.end());
  next.push_back(2);
  PairBuffers buffers(model_.architecture(), Keep::one_block);
  const LossSum loss = model_.loss(
      {.source = {tokens.source, sources}, .target = {tokens.target, targets}, .next = next},
      buffers);
  double sum = 0;
  for (std::int64_t t = 0; t < pass_.targets(); ++t) {
    sum -= std::log(pass_.next_probabilities(t)[static_cast<std::size_t>(next[t])]);
  }
  EXPECT_NEAR(sum, loss.sum, 1e-4 * std::abs(loss.sum));
}

TEST_P(PairPassShapes, TheLensEndsWithTheModelsOwnPrediction) {
  const auto rows = look_through_decoder(pass_, {.position = 2, .top = 3, .followed = 33});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(point_name(rows.front().point), "decoder.0.hook_resid_pre");
  const std::vector<double> own = pass_.next_probabilities(2);
  EXPECT_NEAR(rows.back().probability, own[33], 1e-6);
  for (const LensToken& token : rows.back().top) {
    EXPECT_NEAR(token.probability, own[static_cast<std::size_t>(token.token)], 1e-6);
  }
  EXPECT_GE(rows.back().top[0].probability, rows.back().top[1].probability);
}

INSTANTIATE_TEST_SUITE_P(Shapes, PairPassShapes, ::testing::ValuesIn(toy_pair_shapes()));

TEST(PairPass, TracesAreCutToWhatIsAsked) {
  const Transformer model = toy_translator();
  const PairPass pass(model, toy_pair());
  const Trace trace = trace_pair(
      pass,
      {.points = {.points = {"cross.pattern", "cross.k1", "encoder.*.hook_resid_pre", "logits"},
                  .layers = {0, 1},
                  .heads = {3, 1},
                  .positions = {-1}},
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
  const std::vector<float> row = pass.attention(cross_site).row(1, 3, 4);
  for (std::int64_t s = 0; s < 7; ++s) {
    EXPECT_NEAR(trace.arrays[4].values.data()[7 + s], row[static_cast<std::size_t>(s)], 1e-6);
  }
}

TEST(PairPass, TilesAndWordsAreOfTheSamePlane) {
  const Transformer model = toy_translator();
  const PairPass pass(model, toy_pair());
  PairAttention attention(pass);
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

TEST(PairPass, RefusesWhatIsNotThere) {
  const Transformer model = toy_translator();
  expect_error(
      ErrorCode::invalid_argument, [&] { PairPass(model, {.source = {}, .target = {1}}); },
      "the source");
  expect_error(
      ErrorCode::invalid_argument,
      [&] { PairPass(model, {.source = {4}, .target = std::vector<std::int32_t>(25, 4)}); },
      "the target", "24");
  const PairPass pass(model, toy_pair());
  const auto refused = [&](const std::string& point, ErrorCode code, const std::string& part) {
    expect_error(
        code, [&] { trace_pair(pass, {.points = {.points = {point}}}); }, part);
  };
  refused("encoder.0.cross_attn.hook_q", ErrorCode::invalid_argument, "did you mean");
  refused("blocks.0.attn.hook_q", ErrorCode::invalid_argument, "did you mean");
  refused("decoder.0.hook_resid_pre_grad", ErrorCode::unsupported, "gradients");
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        pass.attention(cross_site).region({.layer = 0, .head = 4, .query_end = 1, .key_end = 1});
      },
      "head 4");
}

}  // namespace
}  // namespace heed
