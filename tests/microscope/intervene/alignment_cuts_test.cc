#include "microscope/intervene/pair_effects.h"

#include <gtest/gtest.h>

#include <cmath>

#include "microscope/intervene/intervention_text.h"
#include "microscope/toy_pairs.h"

namespace heed {
namespace {

using testing::toy_pair;
using testing::toy_translator;

TEST(AlignmentCuts, AreTheProbabilitiesWithTheseEdgesCut) {
  const Transformer model = toy_translator();
  const RecordedPass pass(model, toy_pair());
  const std::vector<TextWord> source{{"a", 0, 2}, {"b", 2, 3}, {"c", 3, 6}, {"", 6, 7}};
  const std::vector<TextWord> target{{"", 0, 1}, {"x", 1, 3}, {"y", 3, 4}, {"z", 4, 5}};
  // "z" has four tokens of the source, and only two others: it is left out.
  const scoring::TrueAlignment truth{.sure = {{0, 1}, {1, 2}, {2, 3}, {1, 3}}, .possible = {}};
  const std::vector<WordCut> cuts = cut_alignments(pass, {source, target}, truth);
  ASSERT_EQ(cuts.size(), 2U);
  EXPECT_EQ(cuts[0].target, 1);
  EXPECT_EQ(cuts[0].edges, 2);

  // By the text form of the same cut: "x" is tokens 1 and 2, written at 0 and 1.
  const HeadEdges edges = parse_edges("cross:0>0,0>1,1>0,1>1");
  std::vector<Intervention> interventions;
  for (const InterventionPoint& each : pattern_points(model.architecture(), edges.head)) {
    interventions.push_back(
        {each.point, each.where, CutEdges{edges.edges, CutEdges::Rest::renormalised}});
  }
  const RecordedPass cut(model, toy_pair(),
                         std::make_shared<Interventions>(model.architecture(), interventions));
  const auto log_probability = [](const RecordedPass& each) {
    return std::log(each.next_probabilities(0)[7]) + std::log(each.next_probabilities(1)[19]);
  };
  EXPECT_NEAR(cuts[0].before, log_probability(pass), 1e-9);
  EXPECT_NEAR(cuts[0].without_true, log_probability(cut), 1e-9);
  EXPECT_NE(cuts[0].without_others, cuts[0].without_true);
  EXPECT_NE(cuts[0].without_others, cuts[0].before);
  // The same draw for the same seed, another for another.
  EXPECT_EQ(cut_alignments(pass, {source, target}, truth)[1].without_others,
            cuts[1].without_others);
}

TEST(AlignmentCuts, WritingEdgesBeginBeforeTheWord) {
  const auto edges = writing_edges({"x", 1, 3}, {4, 6});
  ASSERT_EQ(edges.size(), 4U);
  EXPECT_EQ(edges[0].query, 0);
  EXPECT_EQ(edges[3].query, 1);
  EXPECT_EQ(edges[3].key, 6);
}

}  // namespace
}  // namespace heed
