// One position read again with a change, against whole passes of models of every family.
#include "microscope/intervene/edge_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>

#include "base/expect_error.h"
#include "microscope/attention/visible_keys.h"
#include "microscope/families.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/capture.h"

namespace heed {
namespace {

// Rows of a pass and steps of decoding add the same products in other orders: probabilities of some
// hundredths differ by some units of 2^-24.
constexpr double edge_tolerance = 2e-6;

class FamilyEdges : public ::testing::TestWithParam<testing::ToyFamily> {
 protected:
  const StackSpecification& stack() const { return transformer.specification(); }
  std::int64_t query() const { return std::ssize(tokens) - 1; }

  void expect_near(const std::vector<double>& found, const std::vector<double>& expected) const {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], edge_tolerance);
  }

  // Of two tokens, one token, and what a window hides of a word.
  std::vector<AttentionEdge> edges() const {
    std::vector<AttentionEdge> all;
    for (std::int64_t layer = stack().layers - 1; layer >= 0; --layer) {
      const VisibleKeys seen = visible_keys(stack().block.attention, layer, query(), query() + 1);
      for (std::int64_t head = 0; head < stack().heads(); ++head) {
        all.push_back({{layer, head}, {seen.begin, seen.begin + 2}});
        all.push_back({{layer, head}, {query() - 1, query()}});
      }
    }
    return all;
  }

  std::vector<double> cut(const AttentionEdge& edge) const {
    CutEdges change{.rest = CutEdges::Rest::renormalised};
    for (std::int64_t s = edge.key.begin; s < edge.key.end; ++s) {
      change.edges.push_back({query(), s});
    }
    Interventions without(stack(), {{.point = {PointKind::pattern, edge.head.layer},
                                     .where = {.heads = {edge.head.head}},
                                     .change = std::move(change)}});
    return next_token_probabilities(transformer, tokens, &without);
  }

  Transformer transformer = testing::toy_transformer(GetParam().stack);
  std::vector<std::int32_t> tokens =
      testing::random_tokens(17, GetParam().stack.vocabulary_size, 3);
};

INSTANTIATE_TEST_SUITE_P(Families, FamilyEdges, ::testing::ValuesIn(testing::every_toy_family(32)),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(FamilyEdges, PredictAsAPassDoes) {
  expect_near(EdgeRuns(transformer, tokens, nullptr).probabilities(),
              next_token_probabilities(transformer, tokens));
}

TEST_P(FamilyEdges, AreCutAsInterventionsCutThem) {
  EdgeRuns runs(transformer, tokens, nullptr);
  const std::vector<AttentionEdge> all = edges();
  const auto read = runs.read_without(all);
  ASSERT_EQ(read.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].head.text());
    expect_near(read[i], cut(all[i]));
  }
}

// The edits of a model come after the cut: a head that they switch off reads nothing that counts.
TEST_P(FamilyEdges, OfEditedModelsAreCutBeforeTheEdits) {
  const HeadName off{0, 1};
  transformer =
      transformer.with_editor(std::make_shared<Interventions>(switching_off(stack(), {&off, 1})));
  EdgeRuns runs(transformer, tokens, nullptr);
  for (const AttentionEdge& edge : edges()) {
    const auto read = runs.read_without({&edge, 1});
    expect_near(read.front(), cut(edge));
    if (edge.head == off) expect_near(read.front(), runs.probabilities());
  }
}

TEST_P(FamilyEdges, OfAWordAreCutInEveryHead) {
  EdgeRuns runs(transformer, tokens, nullptr);
  const TokenRun word{query() - 3, query() - 1};
  std::vector<Intervention> cuts;
  for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
    CutEdges change{.rest = CutEdges::Rest::renormalised};
    const VisibleKeys seen = visible_keys(stack().block.attention, layer, query(), query() + 1);
    for (std::int64_t s = word.begin; s < word.end; ++s) {
      if (seen.contains(s)) change.edges.push_back({query(), s});
    }
    if (!change.edges.empty()) {
      cuts.push_back({.point = {PointKind::pattern, layer}, .change = std::move(change)});
    }
  }
  Interventions without(stack(), std::move(cuts));
  expect_near(runs.read_without_word(word),
              next_token_probabilities(transformer, tokens, &without));
}

// The weights of one head's edge on what a text with other words has at its place.
TEST_P(FamilyEdges, ReadOtherWordsThatAreLikelyThere) {
  EdgeRuns runs(transformer, tokens, nullptr);
  const TokenRun word{query() - 4, query() - 2};
  const auto others = runs.other_words(word, {}, 3);
  ASSERT_EQ(others.size(), 3U);
  const std::vector<std::int32_t> before(tokens.begin(), tokens.begin() + word.begin);
  const std::vector<double> likely = next_token_probabilities(transformer, before);
  double former = 1;
  for (const EdgeRuns::OtherWord& other : others) {
    ASSERT_EQ(std::ssize(other.tokens), word.count());
    EXPECT_NE(other.tokens.front(), tokens[static_cast<std::size_t>(word.begin)]);
    const double probability = likely[static_cast<std::size_t>(other.tokens.front())];
    EXPECT_LE(probability, former + edge_tolerance);
    former = probability;
    std::vector<std::int32_t> changed = tokens;
    std::ranges::copy(other.tokens, changed.begin() + word.begin);
    std::vector<Point> points;
    for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
      points.push_back({PointKind::value, layer});
    }
    changed.resize(static_cast<std::size_t>(word.end));
    const Capture capture = trace(transformer, changed, points);
    for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
      const View<const float> expected =
          capture.at(points[static_cast<std::size_t>(layer)]).view()[0];
      const Tensor<float>& values = other.values[static_cast<std::size_t>(layer)];
      for (std::int64_t i = 0; i < values.size(); ++i) {
        const std::int64_t width = values.size() / word.count();
        const float from = expected.slice(0, word.begin + i / width, word.begin + i / width + 1)
                               .reshape({width})(i % width);
        EXPECT_NEAR(values[i], from, 1e-5 * std::max(1.0F, std::abs(from)));
      }
    }
  }
  // The text is read again after other words.
  expect_near(runs.read_without_word(word),
              EdgeRuns(transformer, tokens, nullptr).read_without_word(word));
}

// With the values of the text itself, nothing changes; with those of another, what a pass with the
// mixed values of both gives.
TEST_P(FamilyEdges, ReadOtherValuesWithTheirWeights) {
  EdgeRuns runs(transformer, tokens, nullptr);
  const AttentionEdge edge{{stack().layers - 1, 1}, {query() - 2, query() - 1}};
  const auto others = runs.other_words(edge.key, {}, 1);
  const std::vector<float> mixed = runs.mixed_with(edge, others.front().values.back());
  const Capture own = trace(transformer, tokens,
                            {{PointKind::value, edge.head.layer},
                             {PointKind::pattern, edge.head.layer},
                             {PointKind::mixed_values, edge.head.layer}});
  const std::int64_t group = edge.head.head / stack().block.attention.group_size();
  const double weight =
      own.at({PointKind::pattern, edge.head.layer}).view()(0, 1, query(), edge.key.begin);
  EXPECT_NEAR(runs.weight(edge), weight, 1e-6);
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    const auto d = static_cast<std::int64_t>(i);
    const double before =
        own.at({PointKind::mixed_values, edge.head.layer}).view()(0, query(), 1, d);
    const double change =
        others.front().values.back().view()(0, group, d) -
        own.at({PointKind::value, edge.head.layer}).view()(0, edge.key.begin, group, d);
    EXPECT_NEAR(mixed[i], before + weight * change, 1e-5);
  }
}

// The direct effect: all that later layers, and the head's own feed-forward layer, add is held.
TEST_P(FamilyEdges, DirectlyReadWhatTheStreamCarries) {
  EdgeRuns runs(transformer, tokens, nullptr);
  const AttentionEdge edge{{0, 1}, {query() - 2, query() - 1}};
  const std::vector<EdgeRuns::HeadChange> change{{edge.head, runs.mixed_without(edge)}};
  const auto direct = runs.read_directly(change);
  if (stack().is_post_norm() || !stack().final_norm) {
    EXPECT_TRUE(direct.empty());
    return;
  }
  std::vector<Point> held;
  for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
    if (layer > 0) held.push_back({PointKind::attention_out, layer});
    held.push_back({PointKind::feed_forward_out, layer});
  }
  Capture capture = trace(transformer, tokens, held);
  std::vector<Intervention> fixed;
  for (const Point& point : held) {
    fixed.push_back({.point = point, .change = ReplaceWith(capture.take(point))});
  }
  CutEdges cut{.edges = {{query(), edge.key.begin}}, .rest = CutEdges::Rest::renormalised};
  fixed.push_back({.point = {PointKind::pattern, 0}, .where = {.heads = {1}}, .change = cut});
  Interventions without(stack(), std::move(fixed));
  expect_near(direct.front(), next_token_probabilities(transformer, tokens, &without));
}

TEST_P(FamilyEdges, AreRankedByWhatTheirCutMixes) {
  const EdgeRuns runs(transformer, tokens, nullptr);
  for (const AttentionEdge& edge : edges()) {
    const std::vector<float> with = runs.mixed_without({edge.head, {}});
    const std::vector<float> without = runs.mixed_without(edge);
    double sum = 0;
    for (std::size_t i = 0; i < with.size(); ++i) {
      sum += std::pow(double{with[i]} - without[i], 2);
    }
    EXPECT_NEAR(runs.changes_by_cut(edge.head, {&edge.key, 1}).front(), std::sqrt(sum),
                1e-4 * std::sqrt(sum) + 1e-6);
  }
}

TEST(EdgeRuns, AreStoppedAndRefuseATextThatDoesNotFit) {
  const Transformer transformer =
      testing::toy_transformer(testing::every_toy_family(32).front().stack);
  const std::vector<std::int32_t> tokens =
      testing::random_tokens(9, transformer.specification().vocabulary_size, 5);
  const std::atomic<bool> stop = true;
  testing::expect_error(
      ErrorCode::interrupted, [&] { EdgeRuns(transformer, tokens, &stop); }, "cutting edges");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { EdgeRuns(transformer, {}, nullptr); }, "no tokens");
}

}  // namespace
}  // namespace heed
