// Which edge is shown, in models of which it is known.
#include "microscope/intervene/edge_effects.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/expect_error.h"
#include "generate/random_transformer.h"
#include "microscope/intervene/intervention.h"
#include "support/gpt2_names.h"

namespace heed {
namespace {

// Makes heads write `factor` times what they do: their columns of the projection (out, in).
void scale_heads(Transformer& transformer, std::int64_t layer, std::int64_t but_head,
                 float factor) {
  const View<float> projection = transformer.parameters().tensor(
      testing::gpt2_parameter(fmt::format("h.{}.attn.c_proj.weight", layer)));
  const std::int64_t size = transformer.specification().head_size();
  for (std::int64_t out = 0; out < projection.extent(0); ++out) {
    for (std::int64_t in = 0; in < projection.extent(1); ++in) {
      if (in / size != but_head) projection(out, in) *= factor;
    }
  }
}

const std::vector<std::int32_t>& tokens() {
  static const std::vector<std::int32_t> list = testing::random_tokens(9, 61, 5);
  return list;
}

// What is known: only one head of the model writes anything, and much.
Transformer with_one_head(std::int64_t layer, std::int64_t head) {
  Transformer transformer = testing::random_transformer(testing::small_config());
  for (std::int64_t l = 0; l < transformer.specification().layers; ++l) {
    scale_heads(transformer, l, l == layer ? head : -1, 0.0F);
  }
  scale_heads(transformer, layer, -1, 40.0F);
  return transformer;
}

// Whatever the weights are: of heads that write nothing, no edge has an effect.
TEST(EdgeToShow, IsOfTheHeadThatWrites) {
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    const auto shown = edge_to_show(with_one_head(layer, 2), tokens(), {{8, 9}, single_tokens(9)});
    ASSERT_TRUE(shown);
    EXPECT_EQ(shown->effect.edge.head, (HeadName{layer, 2}));
    EXPECT_GT(shown->effect.cut, 0);
  }
}

TEST(EdgeToShow, SaysWhatItsCutChanges) {
  const Transformer transformer = testing::random_transformer(testing::small_config());
  const std::vector<TokenRun> words{{0, 2}, {2, 5}, {5, 6}, {6, 9}};
  const auto shown = edge_to_show(transformer, tokens(), {{6, 9}, words});
  ASSERT_TRUE(shown);
  const AttentionEdge& edge = shown->effect.edge;
  EXPECT_EQ(shown->query, 8);
  EXPECT_NE(std::ranges::find(words, edge.key), words.end() - 1);
  const std::vector<double> with = next_token_probabilities(transformer, tokens());
  const auto without = [&](const TokenRun& key) {
    CutEdges cut{.rest = CutEdges::Rest::renormalised};
    for (std::int64_t s = key.begin; s < key.end; ++s) cut.edges.push_back({8, s});
    Interventions change(transformer.specification(),
                         {{.point = {PointKind::pattern, edge.head.layer},
                           .where = {.heads = {edge.head.head}},
                           .change = std::move(cut)}});
    return next_token_probabilities(transformer, tokens(), &change);
  };
  const std::vector<double> after = without(edge.key);
  EXPECT_NEAR(shown->effect.cut, total_variation(with, after), 1e-5);
  double others = 0;
  for (const TokenRun& word : std::span(words).first(3)) {
    if (word != edge.key) others += total_variation(with, without(word)) / 2;
  }
  EXPECT_EQ(shown->others, 2U);
  EXPECT_NEAR(shown->others_cut.value(), others, 1e-5);
  EXPECT_NEAR(shown->threshold, std::max(1.0 / 3, 3 * others), 1e-5);
  const auto largest = std::ranges::max_element(with) - with.begin();
  EXPECT_EQ(shown->likeliest.token, largest);
  EXPECT_NEAR(shown->likeliest.before, with[static_cast<std::size_t>(largest)], 1e-5);
  EXPECT_NEAR(shown->likeliest.after, after[static_cast<std::size_t>(largest)], 1e-5);
  EXPECT_EQ(shown->likeliest_without.token, std::ranges::max_element(after) - after.begin());
  ASSERT_FALSE(shown->gained.empty());
  double largest_gain = 0;
  for (std::size_t i = 0; i < with.size(); ++i) {
    largest_gain = std::max(largest_gain, after[i] - with[i]);
  }
  const TokenChange& gained = shown->gained.front();
  EXPECT_NEAR(gained.after - gained.before, largest_gain, 1e-5);
}

// No edge of a random model changes a third: then the one whose head itself writes most is shown.
TEST(EdgeToShow, HasTheLargestDirectEffectWhereNoneDecides) {
  const Transformer transformer = testing::random_transformer(testing::small_config());
  const auto shown = edge_to_show(transformer, tokens(), {{8, 9}, single_tokens(9)});
  ASSERT_TRUE(shown);
  EXPECT_FALSE(shown->decides());
  EdgeRuns runs(transformer, tokens(), nullptr);
  double largest = 0;
  for (const HeadName& head : all_heads(transformer.specification())) {
    for (std::int64_t s = 0; s < 8; ++s) {
      const AttentionEdge edge{head, {s, s + 1}};
      const std::vector<EdgeRuns::HeadChange> change{{head, runs.mixed_without(edge)}};
      largest = std::max(largest,
                         total_variation(runs.probabilities(), runs.read_directly(change).front()));
    }
  }
  EXPECT_NEAR(shown->effect.direct.value(), largest, 1e-5);
}

TEST(EdgeToShow, NeedsAWordBefore) {
  const Transformer transformer = testing::random_transformer(testing::small_config());
  EXPECT_FALSE(edge_to_show(transformer, tokens(), {{0, 1}, single_tokens(9)}));
  EXPECT_FALSE(edge_to_show(transformer, tokens(), {{0, 4}, single_tokens(9)}));  // one word
  EXPECT_TRUE(edge_to_show(transformer, tokens(), {{1, 2}, single_tokens(9)}));
  for (const TokenRun& outside : {TokenRun{8, 10}, TokenRun{3, 3}, TokenRun{-1, 2}}) {
    testing::expect_error(
        ErrorCode::invalid_argument,
        [&] {
          edge_to_show(transformer, tokens(), {outside, single_tokens(9)});
        },
        "no word of tokens");
  }
}

// Beside the text, which is read at most twice, the work is that of some hundred positions.
TEST(EdgeToShow, DoesNotReadMoreForALongText) {
  const StackSpecification config = make_gpt_config(3, 4, 32, 400, 61);
  const Transformer transformer = testing::random_transformer(config);
  const std::vector<std::int32_t> text = testing::random_tokens(400, 61, 5);
  const auto shown = edge_to_show(transformer, text, {{399, 400}, single_tokens(400)});
  ASSERT_TRUE(shown);
  EXPECT_LE(shown->measured, 128U);
  EXPECT_EQ(shown->others, 16U);
  EXPECT_LE(shown->positions_read, 2 * 400 + 128 + 12 * (3 + 3 + 17) + 2);
}

TEST(EdgeToShow, OfAnEditedModelIsRankedByItsCut) {
  const Transformer transformer = with_one_head(1, 2);
  const HeadName off{1, 2};
  const Transformer edited = transformer.with_editor(
      std::make_shared<Interventions>(switching_off(transformer.specification(), {&off, 1})));
  const auto shown = edge_to_show(edited, tokens(), {{8, 9}, single_tokens(9)});
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->effect.cut, 0);  // nothing writes
  EXPECT_FALSE(shown->effect.replaced);
  EXPECT_FALSE(shown->effect.direct);
  EXPECT_FALSE(shown->decides());
}

TEST(EdgeToShow, CanBeStopped) {
  const Transformer transformer = testing::random_transformer(testing::small_config());
  const std::atomic<bool> stop = true;
  testing::expect_error(
      ErrorCode::interrupted,
      [&] {
        edge_to_show(transformer, tokens(), {{8, 9}, single_tokens(9)}, &stop);
      },
      "cutting edges");
}

}  // namespace
}  // namespace heed
