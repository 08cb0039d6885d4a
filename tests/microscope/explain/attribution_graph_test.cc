#include "microscope/explain/attribution_graph.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "generate/random_transformer.h"
#include "microscope/families.h"
#include "microscope/intervene/answer_probability.h"
#include "microscope/intervene/graph_effects.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {
namespace {

constexpr std::int64_t graph_positions = 9;

double sum_of(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double size_of(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double sum, float value) { return sum + std::abs(double{value}); });
}

std::vector<testing::ToyFamily> families_without_gates() {
  std::vector<testing::ToyFamily> families = testing::toy_families(24);
  std::erase_if(families, [](const testing::ToyFamily& family) {
    return family.stack.block.feed_forward.gated;
  });
  return families;
}

class GraphsOfFamilies : public ::testing::TestWithParam<testing::ToyFamily> {};

TEST_P(GraphsOfFamilies, EdgesAndBiasesAddUpToWhatNodesRead) {
  const StackSpecification& stack = GetParam().stack;
  const Transformer transformer = testing::random_transformer(stack);
  const auto tokens = testing::random_tokens(graph_positions, stack.vocabulary_size, 3);
  const RecordedPass pass(transformer, Texts{.source = {}, .target = tokens});
  const Tensor<float> logits = testing::full_logits(transformer, tokens);
  const std::span<const float> last = logits.view()[graph_positions - 1].span();
  std::vector<GraphTarget> targets = {{.number = 7}};
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
    targets.push_back({NodeKind::neuron, layer, graph_positions - 1, 5});
    targets.push_back({NodeKind::neuron, layer, 2, 11});
  }
  const NodeEdges found = edges_into(transformer, tokens, targets, LogitBaseline::mean);
  const auto sources = static_cast<std::size_t>(found.edges.shape()[1]);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const GraphTarget& target = targets[i];
    const std::span<const float> row(found.edges.data() + i * sources, sources);
    const double read = target.kind == NodeKind::logit
                            ? last[7] - sum_of(last) / static_cast<double>(last.size())
                            : double{pass.activations()
                                         .block(target.layer)
                                         .feed_forward.pre(target.position, target.number)};
    // A few thousand terms in f32, each rounded to 6e-8 of the largest.
    const double scale = size_of(row) + std::abs(found.biases[i]);
    EXPECT_NEAR(found.reads[i], read, 1e-5 * scale);
    EXPECT_NEAR(sum_of(row) + found.biases[i], read, 1e-5 * scale) << "target " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GraphsOfFamilies, ::testing::ValuesIn(families_without_gates()),
                         [](const auto& tested) { return tested.param.name; });

class AttributionGraphs : public ::testing::Test {
 protected:
  const Transformer transformer = testing::random_transformer(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(graph_positions, 61, 3);

  AttributionGraph graph_of(std::int64_t neurons) const {
    return attribution_graph(transformer, tokens, {.max_neurons = neurons});
  }
};

TEST_F(AttributionGraphs, NodesBesideOthersHaveTheEdgesThatTheyHaveAlone) {
  const std::vector<GraphTarget> targets = {{NodeKind::neuron, 0, 3, 1},
                                            {.number = 12},
                                            {NodeKind::neuron, 2, 8, 40},
                                            {NodeKind::neuron, 1, 5, 9}};
  const NodeEdges all = edges_into(transformer, tokens, targets, LogitBaseline::alternatives);
  const auto sources = static_cast<std::size_t>(all.edges.shape()[1]);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const NodeEdges alone =
        edges_into(transformer, tokens, {targets[i]}, LogitBaseline::alternatives);
    const double scale = size_of({alone.edges.data(), sources});
    for (std::size_t s = 0; s < sources; ++s) {
      ASSERT_NEAR(all.edges[i * sources + s], alone.edges[s], 1e-6 * scale) << i << " " << s;
    }
  }
}

TEST_F(AttributionGraphs, AllOfTheLogitsIsAccountedFor) {
  for (const std::int64_t neurons : {1, 40, 200}) {
    const AttributionGraph graph = graph_of(neurons);
    EXPECT_EQ(nodes_of_kind(graph, NodeKind::neuron).size(), static_cast<std::size_t>(neurons));
    double found = graph.left_out + graph.of_biases;
    for (std::int64_t t = 0; t < graph_positions; ++t) {
      found += graph.nodes[static_cast<std::size_t>(t)].influence;
    }
    EXPECT_NEAR(found, 1, 1e-6);
  }
  EXPECT_LT(graph_of(200).left_out, graph_of(40).left_out);
}

TEST_F(AttributionGraphs, StrongestPathsAreThoseOfAllPaths) {
  const AttributionGraph graph = graph_of(12);
  const std::vector<double> shares = signed_shares(graph);
  const std::size_t size = graph.nodes.size();
  // By trying every path.
  std::map<std::size_t, double> best;
  const std::function<void(std::size_t, double)> walk = [&](std::size_t target, double share) {
    if (graph.nodes[target].kind == NodeKind::token) {
      best[target] = std::max(best[target], share);
      return;
    }
    for (std::size_t source = 0; source < size; ++source) {
      const double next = share * std::abs(shares[target * size + source]);
      if (next > 0) walk(source, next);
    }
  };
  const std::size_t end = nodes_of_kind(graph, NodeKind::logit).front();
  walk(end, 1);
  const std::vector<GraphPath> paths = strongest_paths(graph, 100);
  ASSERT_EQ(paths.size(), static_cast<std::size_t>(graph_positions));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const GraphPath& path = paths[i];
    EXPECT_NEAR(path.share, best[path.nodes.front()], 1e-12);
    EXPECT_EQ(path.nodes.back(), end);
    EXPECT_EQ(path.weights.size() + 1, path.nodes.size());
    if (i > 0) {
      EXPECT_LE(path.share, paths[i - 1].share);
    }
  }
  EXPECT_THROW(strongest_paths(graph, 3, 0), Error);
}

TEST_F(AttributionGraphs, PruningKeepsTheShareThatIsAskedFor) {
  const AttributionGraph graph = graph_of(100);
  const AttributionGraph small = pruned(graph, {.share = 0.5, .edge_share = 0.9});
  const auto influence = [](const AttributionGraph& of) {
    double sum = 0;
    for (const std::size_t i : nodes_of_kind(of, NodeKind::neuron)) sum += of.nodes[i].influence;
    return sum;
  };
  EXPECT_GE(influence(small), 0.5 * influence(graph));
  EXPECT_LT(small.nodes.size(), graph.nodes.size());
  const auto edges = [](const AttributionGraph& of) {
    return std::count_if(of.edges.begin(), of.edges.end(), [](float edge) { return edge != 0; });
  };
  EXPECT_LT(edges(small), edges(pruned(graph, {.share = 0.5, .edge_share = 1})));
  EXPECT_THROW(pruned(graph, {.share = 0}), Error);
}

TEST_F(AttributionGraphs, CausesAreMeasuredOnTheModel) {
  const WordCauses causes = word_causes(transformer, tokens, {.max_neurons = 60});
  ASSERT_FALSE(causes.paths.empty());
  std::set<std::int64_t> begins;
  for (const CausePath& path : causes.paths) {
    EXPECT_TRUE(begins.insert(path.token).second);
    EXPECT_LE(path.token, path.position);
    Interventions off(transformer.specification(), {{.point = {PointKind::neurons_post, path.layer},
                                                     .where = {.neurons = path.units,
                                                               .first_position = path.position,
                                                               .last_position = path.position},
                                                     .change = SetZero{}}});
    const std::vector<double> without = next_token_probabilities(transformer, tokens, &off);
    EXPECT_NEAR(path.without, without[static_cast<std::size_t>(causes.token)], 1e-6);
    EXPECT_NEAR(path.instead_probability, without[static_cast<std::size_t>(path.instead)], 1e-6);
    EXPECT_EQ(path.controls.size(), 8U);
  }
}

TEST(CausePaths, BeatEveryControl) {
  CausePath path{.without = 0.4, .controls = {0.79, 0.85}};
  EXPECT_DOUBLE_EQ(path.strongest_control(0.8), 0.85);
  EXPECT_TRUE(path.is_cause(0.8));
  path.controls.push_back(0.3);
  EXPECT_FALSE(path.is_cause(0.8));  // a control takes more
  path.controls.back() = 1.3;
  EXPECT_FALSE(path.is_cause(0.8));  // a control moves as much the other way
  path = {.without = 0.797, .controls = {0.8}};
  EXPECT_FALSE(path.is_cause(0.8));  // less than half a percentage point
}

TEST_F(AttributionGraphs, RefusesWhatIsTooLargeWithAnEstimate) {
  try {
    attribution_graph(transformer, tokens, {.max_neurons = 100, .max_bytes = 1 << 20});
    FAIL() << "a graph beyond its memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("expected at most 1 MiB"), std::string::npos)
        << error.what();
  }
  const GraphEstimate estimate = estimate_graph(transformer, graph_positions, {});
  EXPECT_GT(estimate.seconds, 0);
  EXPECT_GT(estimate.bytes, 4 * 256 * graph_positions * 3 * 128);
  EXPECT_THROW(graph_of(0), Error);
  EXPECT_THROW(attribution_graph(transformer, tokens, {.logits = {5, 5}}), Error);
}

#ifdef __GLIBC__
// Bytes that malloc has given out.
std::int64_t bytes_in_use() {
  const struct mallinfo2 found = ::mallinfo2();
  return static_cast<std::int64_t>(found.uordblks + found.hblkhd);
}

// Sampled between the layers of every backward pass, where a pass's rows and all edges so far are
// held, and once the graph is there; edges between all nodes are beside these for a moment. Of any
// kind of weights: those that are prepared are restored for the time being.
TEST_F(AttributionGraphs, TakesNoMoreMemoryThanEstimated) {
  Transformer prepared = testing::random_transformer(testing::small_config());
  prepared.parameters().prepare(kernels::WeightFormat::int8);
  for (const Transformer* const model :
       {&transformer, static_cast<const Transformer*>(&prepared)}) {
    for (const std::int64_t positions : {9, 24}) {
      const auto text = testing::random_tokens(positions, 61, 3);
      for (const std::int64_t neurons :
           {std::int64_t{16}, std::int64_t{300}, positions * 3 * 128}) {
        GraphOptions options{.max_neurons = neurons};
        attribution_graph(*model, text, {.max_neurons = 1});  // what a process allocates once
        const std::int64_t before = bytes_in_use();
        std::int64_t most = 0;
        options.poll = [&] { most = std::max(most, bytes_in_use() - before); };
        const AttributionGraph graph = attribution_graph(*model, text, options);
        most = std::max(most, bytes_in_use() - before);
        const std::int64_t estimate = estimate_graph(*model, positions, options).bytes;
        EXPECT_GE(estimate, most) << positions << " " << neurons;
        EXPECT_LE(estimate, 4 * most) << positions << " " << neurons;
      }
    }
  }
}
#endif

// More neurons than there are, or than a number of bytes counts, are all neurons.
TEST_F(AttributionGraphs, EstimatesAtMostAllNeurons) {
  const std::int64_t all = graph_positions * 3 * 128,
                     most = std::numeric_limits<std::int64_t>::max();
  const GraphEstimate whole = estimate_graph(transformer, graph_positions, {.max_neurons = all});
  EXPECT_GT(whole.bytes, 4 * all * all);
  EXPECT_EQ(estimate_graph(transformer, graph_positions, {.max_neurons = most}).bytes, whole.bytes);
  EXPECT_THROW(attribution_graph(transformer, tokens, {.max_neurons = most, .max_bytes = 1 << 20}),
               Error);
}

TEST_F(AttributionGraphs, RefusesNumbersThatAreNotFinite) {
  Transformer broken = testing::random_transformer(testing::small_config());
  broken.parameters().tensor({Role::token_embedding, Part::weight, -1}).span()[3] = NAN;
  EXPECT_THROW(attribution_graph(broken, tokens, {}), Error);
}

TEST_F(AttributionGraphs, OfAnotherModelIsRefused) {
  const AttributionGraph graph = graph_of(4);
  StackSpecification small = testing::small_config();
  small.vocabulary_size = 8;
  EXPECT_THROW(switch_off_effects(testing::random_transformer(small), graph, 3), Error);
  AttributionGraph torn = graph;
  torn.nodes.pop_back();
  EXPECT_THROW(strongest_paths(torn, 3), Error);
  EXPECT_THROW(pruned(torn), Error);
  torn.nodes.clear();
  EXPECT_THROW(switch_off_effects(transformer, torn, 3), Error);
}

// A word is set against its alternatives also where hardly any probability is left for them.
TEST_F(AttributionGraphs, ACertainWordHasAlternatives) {
  Transformer certain = testing::random_transformer(testing::small_config());
  View<float> gain = certain.parameters().tensor({Role::final_norm, Part::weight, -1});
  for (float& value : gain.span()) value *= 400;
  const std::vector<double> probabilities = next_token_probabilities(certain, tokens);
  const auto word =
      static_cast<std::int64_t>(std::ranges::max_element(probabilities) - probabilities.begin());
  ASSERT_GT(probabilities[static_cast<std::size_t>(word)], 1 - 1e-13);
  const NodeEdges found =
      edges_into(certain, tokens, {{.number = word}}, LogitBaseline::alternatives);
  // The logit less a mean of the others, which are between the smallest and the second largest.
  std::vector<float> logits(61);
  std::ranges::copy(testing::full_logits(certain, tokens).view()[graph_positions - 1].span(),
                    logits.begin());
  std::ranges::sort(logits);
  EXPECT_GE(found.reads[0], (logits[60] - logits[59]) * 0.999);
  EXPECT_LE(found.reads[0], (logits[60] - logits[0]) * 1.001);
}

TEST_F(AttributionGraphs, StopsBetweenLayers) {
  struct Stopped {};
  int polls = 0;
  EXPECT_THROW(attribution_graph(transformer, tokens,
                                 {.poll =
                                      [&] {
                                        if (++polls == 2) throw Stopped();
                                      }}),
               Stopped);
}

TEST(RefusedGraphs, OfGatedNeurons) {
  const Transformer gated = testing::random_transformer(testing::toy_llama(24));
  try {
    attribution_graph(gated, testing::random_tokens(5, 61, 1), {});
    FAIL() << "a graph of gated neurons";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  }
}

}  // namespace
}  // namespace heed
