// The edge that is shown for a word, in the starter model: on sentences that nobody chose.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "microscope/intervene/edge_effects.h"
#include "microscope/intervene/intervention.h"
#include "microworld/microworld.h"
#include "server/explorer_support.h"

namespace heed::server {
namespace {

using testing::starter_explorer;

// Sentences of a text, without the spaces around them.
std::vector<std::string> sentences_of(const std::string& text) {
  std::vector<std::string> sentences(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& last = sentences.back();
    const bool is_space = text[i] == ' ' || text[i] == '\n';
    const bool ends = !last.empty() && std::string(".!?").find(last.back()) != std::string::npos;
    if (is_space && ends) {
      sentences.emplace_back();
    } else if (!(is_space && last.empty())) {
      last += text[i] == '\n' ? ' ' : text[i];
    }
  }
  return sentences;
}

// Sentences of as many stories, each up to a word from its fourth on: whichever a fixed seed draws.
std::vector<std::string> drawn_sentences(std::size_t count, std::uint64_t of_stories) {
  const microworld::Microworld world(of_stories);
  RandomStream random(of_stories, 1);
  std::vector<std::string> drawn;
  for (std::int64_t story = 0; drawn.size() < count; ++story) {
    std::vector<std::string> sentences = sentences_of(world.story(story).text);
    const std::string sentence = sentences[random.below(sentences.size())];
    std::vector<std::size_t> ends;  // of words
    for (std::size_t i = 0; i < sentence.size(); ++i) {
      if (sentence[i] == ' ') ends.push_back(i);
    }
    if (ends.size() < 4) continue;
    drawn.push_back(sentence.substr(0, ends[3 + random.below(ends.size() - 3)]));
  }
  return drawn;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

// By a pass of its own.
double effect_of_cut(const Transformer& transformer, const std::vector<std::int32_t>& tokens,
                     const AttentionEdge& edge) {
  CutEdges cut{.rest = CutEdges::Rest::renormalised};
  for (std::int64_t s = edge.key.begin; s < edge.key.end; ++s) {
    cut.edges.push_back({std::ssize(tokens) - 1, s});
  }
  Interventions without(transformer.specification(),
                        {{.point = {PointKind::pattern, edge.head.layer},
                          .where = {.heads = {edge.head.head}},
                          .change = std::move(cut)}});
  return total_variation(next_token_probabilities(transformer, tokens),
                         next_token_probabilities(transformer, tokens, &without));
}

// Another seed than that of the stories which the starter was trained on.
constexpr std::uint64_t sentence_seed = 31;

TEST(ShownEdges, MatterMoreThanOthersOfTheirHeadAndAreNotAllInTheFirstBlock) {
  const LoadedModel& model = starter_explorer().model();
  RandomStream random(sentence_seed, 2);
  std::vector<double> shown_effects, other_effects;
  int in_first_block = 0, deciding = 0;
  for (const std::string& sentence : drawn_sentences(100, sentence_seed)) {
    const std::vector<std::int32_t> tokens = model.encode(sentence);
    const std::vector<TextWord> units = units_of(model.token_bytes(tokens));
    const std::int64_t begin = units.back().begin;
    const auto shown =
        edge_to_show(model.transformer, tokens,
                     {{begin, std::ssize(tokens)}, single_tokens(std::ssize(tokens))});
    ASSERT_TRUE(shown) << sentence;
    const AttentionEdge& edge = shown->effect.edge;
    in_first_block += edge.head.layer == 0;
    deciding += shown->decides();
    shown_effects.push_back(effect_of_cut(model.transformer, tokens, edge));
    EXPECT_NEAR(shown_effects.back(), shown->effect.cut, 1e-4) << sentence;
    // Any other token before the word.
    auto other = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(begin - 1)));
    if (other >= edge.key.begin) ++other;
    other_effects.push_back(
        effect_of_cut(model.transformer, tokens, {edge.head, {other, other + 1}}));
  }
  const double ratio = median(shown_effects) / median(other_effects);
  RecordProperty("in_first_block", in_first_block);
  RecordProperty("deciding", deciding);
  RecordProperty("median_effect", fmt::format("{:.5f}", median(shown_effects)));
  RecordProperty("median_effect_of_others", fmt::format("{:.5f}", median(other_effects)));
  EXPECT_LE(in_first_block, 25);
  EXPECT_GE(ratio, 3) << median(shown_effects) << " and " << median(other_effects);
  // Some sentences have an edge that decides, and some have none.
  EXPECT_GE(deciding, 10);
  EXPECT_LE(deciding, 90);
}

}  // namespace
}  // namespace heed::server
