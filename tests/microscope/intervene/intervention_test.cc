#include "microscope/intervene/intervention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "generate/random_transformer.h"
#include "microscope/intervene/intervention_text.h"
#include "microscope/traces/capture.h"
#include "model/editor.h"
#include "model/transformer.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::relative_error;

struct InterventionExample {
  Transformer transformer =
      testing::random_transformer(testing::small_config());  // 3 layers of 4 heads of 8
  std::vector<std::int32_t> tokens = testing::random_tokens(10, 61, 3);
  const StackSpecification& specification() const { return transformer.specification(); }

  // The next `count` tokens, behind those in the cache: (count, V).
  Tensor<float> read(KeyValueCache& cache, std::int64_t count, Editor* editor) const {
    const StackActivations activations(specification(), 1, count, Keep::one_block);
    transformer.forward({tokens.data() + cache.length(), {1, count}},
                        {.sequences = Sequences::next_of(cache, count), .editor = editor},
                        activations);
    Tensor<float> logits(Shape{count, specification().vocabulary_size});
    transformer.project(activations.final_norm(), logits);
    return logits;
  }
  Tensor<float> logits(Editor* editor) const {
    KeyValueCache cache(specification(), 1, 10);
    return read(cache, 10, editor);
  }
  Capture captured(const std::vector<Point>& points, Editor* editor = nullptr) const {
    Capture capture(points);
    const StackActivations activations(specification(), 1, 10, Keep::one_block);
    transformer.forward({tokens.data(), {1, 10}},
                        {.sequences = {1, 10}, .probe = &capture, .editor = editor}, activations);
    return capture;
  }
};

Intervention at(PointKind kind, std::int64_t layer, Change change, Selection where = {}) {
  return {{kind, layer}, std::move(where), std::move(change)};
}

TEST(Interventions, OfNothingChangeNoBit) {
  const InterventionExample example;
  Interventions none(example.specification(), {});
  EXPECT_TRUE(std::ranges::equal(example.logits(nullptr).span(), example.logits(&none).span()));
}

// hook_result, what a head adds to the stream, is z · W_O of that head: without it attention's
// output lacks exactly that. f32 sums of 32 products: 1e-5.
TEST(Interventions, AHeadThatIsAblatedAddsNothing) {
  const InterventionExample example;
  Interventions ablated(example.specification(),
                        {at(PointKind::mixed_values, 1, SetZero{}, {.heads = {2}})});
  const Point out{PointKind::attention_out, 1};
  const auto with = example.captured({out, {PointKind::mixed_values, 1}});
  const auto without = example.captured({out}, &ablated);
  const View<const float> projection = example.transformer.parameters().block(1).projection.weight;
  std::vector<float> expected;
  for (std::int64_t t = 0; t < 10; ++t) {
    for (std::int64_t c = 0; c < 32; ++c) {
      double own = 0;
      for (std::int64_t d = 0; d < 8; ++d) {
        own += static_cast<double>(with.at({PointKind::mixed_values, 1}).view()(0, t, 2, d)) *
               projection(c, 2 * 8 + d);
      }
      expected.push_back(static_cast<float>(with.at(out).view()(0, t, c) - own));
    }
  }
  EXPECT_LT(relative_error(without.at(out).span(), expected), 1e-5);
}

TEST(Interventions, AReplacedStreamCarriesAllOfAnotherRun) {
  const InterventionExample clean;
  InterventionExample corrupted;
  corrupted.tokens = testing::random_tokens(10, 61, 4);
  const auto plain = clean.logits(nullptr);
  ASSERT_GT(relative_error(corrupted.logits(nullptr).span(), plain.span()), 0.1);
  for (const Point point :
       {Point{PointKind::residual_pre, 1}, Point{PointKind::residual_post, 2}}) {
    Capture capture = clean.captured({point});
    Tensor<float> values(capture.at(point).shape());
    std::ranges::copy(capture.at(point).span(), values.data());
    Interventions patched(clean.specification(), {{point, {}, ReplaceWith{std::move(values)}}});
    EXPECT_TRUE(std::ranges::equal(corrupted.logits(&patched).span(), plain.span()));
  }
}

TEST(Interventions, AreRestrictedToPositionsHeadsAndNeurons) {
  const InterventionExample example;
  const Point query{PointKind::query, 0};
  const Point neurons{PointKind::neurons_post, 2};
  Interventions some(
      example.specification(),
      {at(PointKind::query, 0, ScaleBy{3},
          {.heads = {1, 3}, .first_position = 4, .last_position = 6}),
       at(PointKind::query, 0, AddVector{{1, 2, 3, 4, 5, 6, 7, 8}},
          {.heads = {1}, .first_position = 6}),
       at(PointKind::neurons_post, 2, SetZero{}, {.neurons = {5, 100}, .last_position = 0})});
  const auto before = example.captured({query});
  const auto after = example.captured({query, neurons}, &some);
  for (std::int64_t t = 0; t < 10; ++t) {
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t d = 0; d < 8; ++d) {
        float expected = before.at(query).view()(0, t, h, d);
        if ((h == 1 || h == 3) && t >= 4 && t <= 6) expected *= 3;
        if (h == 1 && t >= 6) expected += static_cast<float>(d + 1);
        EXPECT_EQ(after.at(query).view()(0, t, h, d), expected);
      }
    }
  }
  EXPECT_EQ(after.at(neurons).view()(0, 0, 5), 0);
  EXPECT_EQ(after.at(neurons).view()(0, 0, 100), 0);
  EXPECT_NE(after.at(neurons).view()(0, 0, 6), 0);
  EXPECT_NE(after.at(neurons).view()(0, 1, 5), 0);
}

TEST(Interventions, SetAPointToItsMean) {
  const InterventionExample example;
  const Point point{PointKind::mixed_values, 1};
  const std::vector<Texts> set{{.target = example.tokens},
                               {.target = testing::random_tokens(4, 61, 8)}};
  const std::vector<float> mean = mean_row(example.transformer, point, set);
  ASSERT_EQ(mean.size(), 32U);
  double sum = 0;
  for (const Texts& text : set) {
    const Capture capture = trace(example.transformer, text.target, {point});
    for (std::int64_t t = 0; t < std::ssize(text.target); ++t) {
      sum += capture.at(point).view()(0, t, 2, 5);
    }
  }
  EXPECT_NEAR(mean[2 * 8 + 5], sum / 14, 1e-6);
  Interventions meant(example.specification(), {{point, {.heads = {2}}, SetRow{mean}}});
  const auto after = example.captured({point}, &meant);
  EXPECT_EQ(after.at(point).view()(0, 7, 2, 5), mean[2 * 8 + 5]);
  EXPECT_NE(after.at(point).view()(0, 7, 1, 5), mean[1 * 8 + 5]);
}

// z of the cut rows by hand: Σ pattern·value without the edge, or scaled by what is left.
void expect_cut(CutEdges::Rest rest) {
  const InterventionExample example;
  const Point pattern{PointKind::pattern, 2}, value{PointKind::value, 2},
      mixed{PointKind::mixed_values, 2};
  Interventions cut(
      example.specification(),
      {at(PointKind::pattern, 2, CutEdges{{{6, 2}, {6, 6}, {3, 0}}, rest}, {.heads = {1}})});
  const auto before = example.captured({pattern, value, mixed});
  const auto after = example.captured({pattern, mixed}, &cut);
  for (std::int64_t t = 0; t < 10; ++t) {
    std::vector<double> row(10);
    double left = 0;
    for (std::int64_t s = 0; s < 10; ++s) {
      const bool is_cut = (t == 6 && (s == 2 || s == 6)) || (t == 3 && s == 0);
      row[s] = is_cut ? 0 : before.at(pattern).view()(0, 1, t, s);
      left += row[s];
    }
    for (std::int64_t d = 0; d < 8; ++d) {
      double expected = 0;
      for (std::int64_t s = 0; s < 10; ++s) {
        expected += row[s] * before.at(value).view()(0, s, 1, d);
      }
      if (rest == CutEdges::Rest::renormalised) expected /= left;
      EXPECT_NEAR(after.at(mixed).view()(0, t, 1, d), expected, 1e-5 * (1 + std::abs(expected)));
      // Other heads stay in the fused kernel, to the bit.
      EXPECT_EQ(after.at(mixed).view()(0, t, 0, d), before.at(mixed).view()(0, t, 0, d));
    }
    EXPECT_NEAR(after.at(pattern).view()(0, 1, t, 2),
                row[2] / (rest == CutEdges::Rest::renormalised ? left : 1), 1e-6);
  }
}
TEST(Interventions, CutEdgesAsByHand) { expect_cut(CutEdges::Rest::kept); }
TEST(Interventions, CutEdgesAndRenormaliseAsByHand) { expect_cut(CutEdges::Rest::renormalised); }

TEST(Interventions, ARowOfWhichNothingIsLeftIsZero) {
  const InterventionExample example;
  Interventions cut(example.specification(),
                    {at(PointKind::pattern, 0, CutEdges{{{0, 0}}, CutEdges::Rest::renormalised})});
  const Point mixed{PointKind::mixed_values, 0};
  EXPECT_EQ(example.captured({mixed}, &cut).at(mixed).view()(0, 0, 1, 1), 0);
}

TEST(Interventions, FreezeAPattern) {
  const InterventionExample example;
  InterventionExample other;
  other.tokens = testing::random_tokens(10, 61, 9);
  const Point pattern{PointKind::pattern, 1};
  const auto traced = other.captured({pattern});
  Tensor<float> values(Shape{1, 4, 10, 10});
  std::ranges::copy(traced.at(pattern).span(), values.data());
  Interventions frozen(example.specification(),
                       {{pattern, {.heads = {0}}, ReplaceWith{std::move(values)}}});
  const auto after = example.captured({pattern}, &frozen);
  const auto before = example.captured({pattern});
  EXPECT_TRUE(std::ranges::equal(after.at(pattern).view()[0][0].span(),
                                 traced.at(pattern).view()[0][0].span()));
  EXPECT_TRUE(std::ranges::equal(after.at(pattern).view()[0][1].span(),
                                 before.at(pattern).view()[0][1].span()));
}

// From a step on: the prompt of 6 and the first two steps are as without.
TEST(Interventions, BeginAtAStepOfCachedGeneration) {
  const InterventionExample example;
  Interventions late(
      example.specification(),
      {at(PointKind::mixed_values, 0, SetZero{}, {.heads = {1}, .first_position = 8}),
       at(PointKind::pattern, 1, CutEdges{{{9, 1}}}, {.heads = {2}})});
  const auto plain = example.logits(nullptr);
  const auto whole = example.logits(&late);
  KeyValueCache cache(example.specification(), 1, 10);
  example.read(cache, 6, &late);
  for (std::int64_t t = 6; t < 10; ++t) {
    const auto step = example.read(cache, 1, &late);
    const std::span<const float> logits = step.span();
    EXPECT_LT(relative_error(logits, whole.view()[t].span()), 1e-5) << t;
    const double moved = relative_error(logits, plain.view()[t].span());
    EXPECT_EQ(moved > 1e-4, t >= 8) << moved;
  }
}

// Scores of hidden keys follow from the operands of the sequence that is edited, also beside an
// editor that is given all heads at once.
TEST(Interventions, LiftTheMaskOfEverySequenceOfABatch) {
  struct AllHeads final : Editor {
    bool edits(const Point& point) const override { return point.kind == PointKind::scores; }
    bool edits_heads_together() const override { return true; }
    void edit(const EditedPoint&, View<float>) override {}
  };
  const InterventionExample example;
  InterventionExample other;
  other.tokens = testing::random_tokens(10, 61, 4);
  Interventions open(example.specification(),
                     {at(PointKind::scores, 0, SetMask{SetMask::Kind::none}, {.heads = {1, 2}})});
  AllHeads all_heads;
  JoinedEditor joined(open, all_heads);
  std::vector<std::int32_t> batch = example.tokens;
  batch.insert(batch.end(), other.tokens.begin(), other.tokens.end());
  for (Editor* const editor : std::initializer_list<Editor*>{&open, &joined}) {
    const StackActivations activations(example.specification(), 2, 10, Keep::one_block);
    example.transformer.forward({batch.data(), {2, 10}}, {.sequences = {2, 10}, .editor = editor},
                                activations);
    Tensor<float> logits(Shape{20, example.specification().vocabulary_size});
    example.transformer.project(activations.final_norm(), logits);
    const std::size_t half = logits.span().size() / 2;
    // Another order of sums over 10 positions: 1e-5.
    EXPECT_LT(relative_error(logits.span().first(half), example.logits(&open).span()), 1e-5);
    EXPECT_LT(relative_error(logits.span().last(half), other.logits(&open).span()), 1e-5);
    EXPECT_GT(relative_error(logits.span().last(half), other.logits(nullptr).span()), 1e-3);
  }
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "no error";
}

TEST(Interventions, RefuseWhatDoesNotFit) {
  const InterventionExample example;
  const auto message = [&](Intervention intervention) {
    return message_of([&] {
      std::vector<Intervention> list;
      list.push_back(std::move(intervention));
      Interventions(example.specification(), std::move(list));
    });
  };
  EXPECT_THAT(message(at(PointKind::query, 3, SetZero{})), HasSubstr("layers 0 to 2"));
  EXPECT_THAT(message(at(PointKind::query, 0, SetZero{}, {.heads = {4}})),
              HasSubstr("heads 0 to 3"));
  EXPECT_THAT(message(at(PointKind::neurons_post, 0, SetZero{}, {.neurons = {128}})),
              HasSubstr("neurons 0 to 127"));
  EXPECT_THAT(message(at(PointKind::residual_mid, 0, SetZero{}, {.heads = {0}})),
              HasSubstr("no heads"));
  EXPECT_THAT(message(at(PointKind::residual_mid, 0, AddVector{{1, 2}})),
              HasSubstr("2 numbers at blocks.0.hook_resid_mid, expected 32"));
  EXPECT_THAT(message(at(PointKind::pattern, 0, AddVector{{1}})), HasSubstr("takes no vector"));
  EXPECT_THAT(message(at(PointKind::query, 0, CutEdges{{{1, 0}}})), HasSubstr("hook_pattern"));
  EXPECT_THAT(message(at(PointKind::pattern, 0, CutEdges{{{1, 2}}})), HasSubstr("from 1 to 2"));
  EXPECT_THAT(message({{PointKind::logits}, {}, SetZero{}}), HasSubstr("change unembed.hook_in"));
  EXPECT_THAT(message(at(PointKind::query_input, 0, AddVector{{1, 2}})), HasSubstr("expected 32"));
  EXPECT_THAT(message(at(PointKind::key, 0, ReplaceWith{Tensor<float>(Shape{1, 5, 4, 7})})),
              HasSubstr("shape (1, 5, 4, 7), expected (1, T, 4, 8)"));
}

TEST(InterventionText, NamesPlaces) {
  const Architecture config{.stacks = {testing::small_config()}};
  const auto head = parse_points(config, "L2H3@4-");
  ASSERT_EQ(head.size(), 1U);
  EXPECT_EQ(head[0].point, (Point{PointKind::mixed_values, 2}));
  EXPECT_EQ(head[0].where.heads, std::vector<std::int64_t>{3});
  EXPECT_EQ(head[0].where.first_position, 4);
  EXPECT_EQ(parse_points(config, "L1")[1].point, (Point{PointKind::feed_forward_out, 1}));
  EXPECT_EQ(parse_points(config, "L1.attn").size(), 1U);
  EXPECT_EQ(parse_points(config, "L0N127")[0].where.neurons, std::vector<std::int64_t>{127});
  EXPECT_EQ(parse_points(config, "blocks.*.hook_mlp_out@2-3").size(), 3U);
  EXPECT_EQ(parse_points(config, "L2H3.pattern@2-")[0].point, (Point{PointKind::pattern, 2}));
  EXPECT_EQ(parse_points(config, "L2H3.k")[0].where.heads, std::vector<std::int64_t>{3});
  EXPECT_EQ(parse_points(config, "L2H3.k")[0].point, (Point{PointKind::key, 2}));
  EXPECT_EQ(parse_points(config, "L2H3.k_input")[0].point, (Point{PointKind::key_input, 2}));
  EXPECT_EQ(parse_points(config, "L2H3.result")[0].point, (Point{PointKind::head_results, 2}));
  EXPECT_EQ(parse_points(config, "q_input1@3")[0].point, (Point{PointKind::query_input, 1}));
  EXPECT_EQ(parse_points(config, "hook_result").size(), 3U);
  EXPECT_EQ(parse_points(config, "hook_result")[1].point, (Point{PointKind::head_results, 1}));
  EXPECT_EQ(parse_assignment("blocks.*.hook_z=0.5", "").point, "blocks.*.hook_z");
  EXPECT_EQ(parse_factor("-0.5"), -0.5F);
  const HeadEdges cut = parse_edges("L1H0:7>3,7>4");
  EXPECT_EQ(cut.head, "L1H0");
  ASSERT_EQ(cut.edges.size(), 2U);
  EXPECT_EQ(cut.edges[1].key, 4);
}

TEST(InterventionText, OffersTheNearestNames) {
  const Architecture config{.stacks = {testing::small_config()}};
  EXPECT_THAT(message_of([&] { parse_points(config, "blocks.1.hook_resid_prä"); }),
              HasSubstr("'blocks.1.hook_resid_pre'"));
  EXPECT_THAT(message_of([&] { parse_points(config, "L2H9"); }), HasSubstr("'L2H3'"));
  EXPECT_THAT(message_of([&] { parse_points(config, "L7H0"); }), HasSubstr("layers 0 to 2"));
  for (const char* text : {"", "L", "LxH1", "L1H", "L1H1@", "L1H1@3-2", "L1Hx", "@3"}) {
    EXPECT_NE(message_of([&] { parse_points(config, text); }), "no error") << text;
  }
  for (const char* text : {"L1H0", "L1H0:", "L1H0:3", "L1H0:3>", "L1H0:3>1;", ":3>1"}) {
    EXPECT_THAT(message_of([&] { parse_edges(text); }), HasSubstr("not a list of edges"));
  }
  EXPECT_THAT(message_of([&] { parse_points(config, "L1H0.x"); }), HasSubstr(".pattern"));
  EXPECT_THAT(message_of([&] { parse_factor("half"); }), HasSubstr("not a finite number"));
  for (const char* text : {"L1H0", "=2", "L1H0="}) {
    EXPECT_THAT(message_of([&] { parse_assignment(text, "--scale L2H3=0.5"); }),
                HasSubstr("--scale L2H3=0.5"));
  }
}

TEST(InterventionText, PositionsOutsideTheTextAreRefused) {
  const Architecture config{.stacks = {testing::small_config()}};
  const auto check = [&](const char* text) {
    for (const InterventionPoint& place : parse_points(config, text)) {
      require_positions(place, {.target = 6}, text);
    }
  };
  for (const char* text : {"L0H0", "L0H0@5", "L0H0@3-5", "L0H0@5-"}) {
    EXPECT_EQ(message_of([&] { check(text); }), "no error") << text;
  }
  for (const char* text : {"L0H0@6", "L0H0@3-6", "L0H0@6-", "L0H0@9-12"}) {
    EXPECT_THAT(message_of([&] { check(text); }), HasSubstr("positions 0 to 5")) << text;
  }
  const auto check_edges = [&](const char* text) {
    const HeadEdges cut = parse_edges(text);
    require_edges(pattern_points(config, cut.head).at(0), cut.edges, {.target = 6}, text);
  };
  EXPECT_EQ(message_of([&] { check_edges("L1H0:5>3"); }), "no error");
  EXPECT_THAT(message_of([&] { check_edges("L1H0:6>3"); }), HasSubstr("edge 6>3"));
}

}  // namespace
}  // namespace heed
