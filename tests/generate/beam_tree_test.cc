// The tree that a beam search writes down, against searches by full passes.
#include "generate/beam_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "generate/plain_search.h"

namespace heed {
namespace {

using testing::exhaustive_search;
using testing::expect_error;
using testing::expect_found;
using testing::expect_same;
using testing::few_sources;
using testing::plain_beam_search;
using testing::PlainCandidate;
using testing::toy_translator;
using testing::ToySources;
using testing::uncached;
using testing::UncachedNext;

// Sums along paths are those of their ends, and the hypotheses are in it.
void expect_sound(const BeamTree& tree, const std::vector<TokenHypothesis>& found) {
  ASSERT_FALSE(tree.nodes.empty());
  EXPECT_EQ(tree.nodes.front().parent, -1);
  EXPECT_EQ(tree.nodes.front().sum, 0);
  for (std::size_t id = 1; id < tree.nodes.size(); ++id) {
    const BeamNode& node = tree.nodes[id];
    ASSERT_GE(node.parent, 0);
    ASSERT_LT(static_cast<std::size_t>(node.parent), id);
    const BeamNode& parent = tree.nodes[static_cast<std::size_t>(node.parent)];
    EXPECT_EQ(parent.fate, BeamFate::kept);
    EXPECT_EQ(node.step, parent.step + 1);
    EXPECT_LE(node.log_probability, 0);
    // double sums of f32 numbers below 100
    EXPECT_NEAR(node.sum, parent.sum + node.log_probability, 1e-12);
    if (node.step == tree.nodes[id - 1].step) {
      EXPECT_LE(node.sum, tree.nodes[id - 1].sum);
    }
  }
  ASSERT_EQ(tree.hypotheses.size(), found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const BeamNode& last = tree.nodes[static_cast<std::size_t>(tree.hypotheses[i])];
    EXPECT_EQ(tree.tokens_to(tree.hypotheses[i]), found[i].tokens);
    EXPECT_EQ(last.sum, found[i].log_probability);  // to the bit
    EXPECT_EQ(last.fate, found[i].finished ? BeamFate::finished : BeamFate::kept);
  }
}

TEST(BeamTree, IsWhatAPlainSearchLooksAt) {
  const ToySources sources = few_sources();
  int finished = 0, dropped = 0, cut_off = 0;
  for (const std::uint64_t seed : {3U, 4U}) {
    const Transformer model = toy_translator(seed);
    std::vector<UncachedNext> next = uncached(model, sources);
    for (const std::int64_t beams : {1, 2, 3, 5}) {
      std::vector<BeamTree> trees;
      const auto found =
          beam_search(model, sources.rows(),
                      {.beams = beams, .n_best = beams, .max_length = 9, .trees = &trees});
      ASSERT_EQ(trees.size(), next.size());
      for (std::size_t b = 0; b < next.size(); ++b) {
        const BeamTree& tree = trees[b];
        expect_sound(tree, found[b]);
        std::vector<PlainCandidate> expected;
        plain_beam_search(next[b], 9, 1.0, static_cast<std::size_t>(beams), &expected);
        ASSERT_EQ(tree.nodes.size(), expected.size() + 1);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const BeamNode& node = tree.nodes[i + 1];
          EXPECT_EQ(tree.tokens_to(static_cast<std::int32_t>(i + 1)),
                    expected[i].hypothesis.tokens);
          EXPECT_NEAR(node.sum, expected[i].hypothesis.log_probability, 1e-4);
          EXPECT_EQ(node.fate, expected[i].fate) << i;
          finished += node.fate == BeamFate::finished;
          dropped += node.fate == BeamFate::dropped;
          cut_off += node.fate == BeamFate::kept && node.step == 9;
        }
      }
    }
  }
  EXPECT_GT(finished, 20);
  EXPECT_GT(dropped, 20);
  EXPECT_GT(cut_off, 0);
}

// With more beams than there are outputs, the tree is that of every output.
TEST(BeamTree, WithEnoughBeamsItHoldsEveryOutput) {
  const Transformer model = toy_translator();
  const ToySources sources{{4, 1, 2, 0}};
  std::vector<BeamTree> trees;
  const auto found = beam_search(model, sources.rows(),
                                 {.beams = 200, .n_best = 200, .max_length = 3, .trees = &trees});
  expect_sound(trees.front(), found.front());
  // Four tokens go on and one ends: 5, then 4·5, then 16·5 candidates, and no more.
  EXPECT_EQ(trees.front().nodes.size(), 1U + 5 + 20 + 80);
  EXPECT_EQ(found.front().size(), 1U + 4 + 80);
  double all = 0;
  for (const TokenHypothesis& each : found.front()) all += std::exp(each.log_probability);
  UncachedNext next(model, sources.source(0));
  double expected = 0;  // 1 but for what padding would have had
  for (const auto& each : exhaustive_search(next, 3, 1.0)) {
    expected += std::exp(each.log_probability);
  }
  EXPECT_NEAR(all, expected, 1e-4);
}

TEST(BeamTree, RecordingChangesNothing) {
  const Transformer model = toy_translator(8, 90);
  ToySources sources{};
  for (std::int32_t i = 0; i < 12; ++i) sources.add({(7 * i) % 90, (11 * i + 3) % 90, i, 0});
  for (const CacheType type : {CacheType::f32, CacheType::int8}) {
    BeamOptions options{
        .beams = 3, .n_best = 3, .max_length = 12, .batch_tokens = 60, .cache_type = type};
    const auto alone = beam_search(model, sources.rows(), options);
    std::vector<BeamTree> trees;
    options.trees = &trees;
    const auto recorded = beam_search(model, sources.rows(), options);
    ASSERT_EQ(trees.size(), alone.size());
    for (std::size_t b = 0; b < alone.size(); ++b) {
      expect_same(recorded[b], alone[b]);
      expect_sound(trees[b], alone[b]);
    }
  }
}

// Changes both stacks, where the fast path keeps nothing too.
class SomeEdits : public Editor {
 public:
  bool edits(const Point& point) const override {
    return point == Point{PointKind::pattern, 1, StackSite::encoder} ||
           point == Point{PointKind::cross_value, 0, StackSite::decoder} ||
           point == Point{PointKind::cross_pattern, 1, StackSite::decoder} ||
           point == Point{PointKind::neurons_post, 0, StackSite::decoder};
  }
  bool edits_head(const Point& point, std::int64_t head) const override {
    return edits(point) && head == 1;
  }
  void edit(const EditedPoint& edited, View<float> values) override {
    for (std::int64_t b = 0; b < values.extent(0); ++b) {
      for (std::int64_t t = 0; t < values.extent(edited.head < 0 ? 1 : 2); ++t) {
        const auto factor = static_cast<float>(0.2 * static_cast<double>(edited.position(b, t)));
        change(edited.head < 0 ? values[b][t] : values[b][0][t], factor);
      }
    }
  }

 private:
  static void change(View<float> row, float factor) {
    if (row.rank() == 1) {
      for (std::int64_t i = 0; i < row.extent(0); ++i) row(i) *= factor;
      return;
    }
    for (std::int64_t i = 0; i < row.extent(0); ++i) change(row[i], factor);
  }
};

TEST(BeamSearchWithEdits, FindsWhatFullPassesWithThemFind) {
  const ToySources sources = few_sources();
  SomeEdits editor;
  int differ = 0;
  for (const std::uint64_t seed : {3U, 4U, 5U}) {
    const Transformer model = toy_translator(seed);
    for (std::int64_t b = 0; b < sources.count(); ++b) {
      const ToySources one{sources.source(b)};
      UncachedNext next(model, sources.source(b), &editor);
      for (const std::int64_t beams : {1, 3}) {
        BeamOptions options{.beams = beams, .n_best = beams, .max_length = 9};
        const auto plain = beam_search(model, one.rows(), options).front();
        options.editor = &editor;
        std::vector<BeamTree> trees;
        options.trees = &trees;
        const auto found = beam_search(model, one.rows(), options).front();
        expect_found(found, plain_beam_search(next, 9, 1.0, static_cast<std::size_t>(beams)), 1.0);
        expect_sound(trees.front(), found);
        differ += std::abs(found[0].log_probability - plain[0].log_probability) > 1e-2;
      }
    }
  }
  EXPECT_GT(differ, 12);
  expect_error(
      ErrorCode::invalid_argument,
      [&] { beam_search(toy_translator(), sources.rows(), {.editor = &editor}); },
      "4 sources are not decoded with edits together");
}

}  // namespace
}  // namespace heed
