// Attribution graphs of features: exact sums with random transcoders of every kind, on toy models
// of every family.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/expect_error.h"
#include "base/random.h"
#include "microscope/explain/attribution_graph.h"
#include "microscope/explain/layer_transcoders.h"
#include "microscope/families.h"
#include "microscope/intervene/answer_probability.h"
#include "microscope/intervene/graph_effects.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {
namespace {

constexpr std::int64_t transcoded_positions = 9, features_of_layer = 48;

struct TranscoderKind {
  const char* name;
  FeatureActivation activation = FeatureActivation::top_k;
  bool reads_stream = false;
  bool has_skip = false;
  bool crosses_layers = false;
};

Tensor<float> drawn(const Shape& shape, double scale, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Tensor<float> values(shape);
  for (float& value : values.span()) value = static_cast<float>(scale * random.normal());
  return values;
}

PointKind input_kind(const StackSpecification& stack, const TranscoderKind& kind) {
  if (!kind.reads_stream) {
    return stack.shares_norm() ? PointKind::norm_1_normalized : PointKind::norm_2_normalized;
  }
  return stack.is_parallel() ? PointKind::residual_pre : PointKind::residual_mid;
}

SparseDictionary drawn_transcoder(const StackSpecification& stack, std::int64_t layer,
                                  const TranscoderKind& kind) {
  const std::int64_t channels = stack.channels, features = features_of_layer;
  DictionarySpecification own{.activation = kind.activation,
                              .inputs = channels,
                              .features = features,
                              .outputs = channels,
                              .k = kind.activation == FeatureActivation::top_k ? 5 : 0,
                              .input_point = point_name({input_kind(stack, kind), layer})};
  const std::int64_t last = kind.crosses_layers ? stack.layers : layer + 1;
  for (std::int64_t to = layer; to < last; ++to) {
    own.output_points.push_back(point_name({PointKind::feed_forward_out, to}));
  }
  const std::uint64_t seed = 100 * static_cast<std::uint64_t>(layer);
  const double scale = 1 / std::sqrt(static_cast<double>(channels));
  DictionaryWeights weights;
  weights.encoder = drawn({features, channels}, scale, seed + 1);
  weights.encoder_bias = drawn({features}, 0.1, seed + 2);
  weights.decoder = drawn({features, own.points(), channels}, scale, seed + 3);
  weights.decoder_bias = drawn({channels}, 0.3, seed + 4);
  if (kind.has_skip) weights.skip = drawn({channels, channels}, scale, seed + 5);
  if (kind.activation == FeatureActivation::gated) {
    weights.gate_bias = drawn({features}, 0.1, seed + 6);
    weights.magnitude = drawn({features}, 1, seed + 7);
    for (float& value : weights.magnitude.span()) value = std::exp(value);
  }
  if (kind.activation == FeatureActivation::jump_relu) {
    weights.threshold = Tensor<float>(Shape{features});
    weights.threshold.fill(0.4F);
  }
  return SparseDictionary(
      std::make_shared<const Dictionary>(std::move(own), std::move(weights), "drawn"));
}

std::vector<SparseDictionary> drawn_transcoders(const StackSpecification& stack,
                                                const TranscoderKind& kind) {
  std::vector<SparseDictionary> all;
  for (std::int64_t layer = stack.layers - 1; layer >= 0; --layer) {  // in any order
    all.push_back(drawn_transcoder(stack, layer, kind));
  }
  return all;
}

const std::vector<TranscoderKind>& transcoder_kinds() {
  using enum FeatureActivation;
  static const std::vector<TranscoderKind> kinds = {
      {.name = "top_k"},
      {.name = "relu_of_the_stream", .activation = relu, .reads_stream = true},
      {.name = "gated", .activation = gated},
      {.name = "jump_relu", .activation = jump_relu},
      {.name = "skip", .has_skip = true},
      {.name = "skip_of_the_stream", .reads_stream = true, .has_skip = true},
      {.name = "across_layers", .activation = relu, .crosses_layers = true},
  };
  return kinds;
}

double total(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double total_size(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double sum, float value) { return sum + std::abs(double{value}); });
}

class GraphsOfTranscoders : public ::testing::TestWithParam<testing::ToyFamily> {};

TEST_P(GraphsOfTranscoders, EdgesAndBiasesAddUpToActivations) {
  const StackSpecification& stack = GetParam().stack;
  const Transformer transformer = testing::toy_transformer(stack);
  const auto tokens = testing::random_tokens(transcoded_positions, stack.vocabulary_size, 3);
  const RecordedPass pass(transformer, Texts{.source = {}, .target = tokens});
  const Tensor<float> logits = testing::full_logits(transformer, tokens);
  const std::span<const float> last = logits.view()[transcoded_positions - 1].span();
  for (const TranscoderKind& kind : transcoder_kinds()) {
    if (kind.has_skip && stack.is_parallel()) continue;
    SCOPED_TRACE(kind.name);
    const std::vector<SparseDictionary> transcoders = drawn_transcoders(stack, kind);
    std::vector<GraphTarget> targets = {{.number = 7}};
    std::vector<double> wanted = {last[7] - total(last) / static_cast<double>(last.size())};
    std::size_t active = 0;
    for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
      const Dictionary& own =
          transcoders[static_cast<std::size_t>(stack.layers - 1 - layer)].dictionary();
      const Tensor<float> x = pass.computed({input_kind(stack, kind), layer});
      const FeatureRows rows = own.encode(x.view().reshape({transcoded_positions, stack.channels}));
      active += rows.features.size();
      // Of the last position and the third, the first active feature.
      for (const std::size_t position : {std::size_t{8}, std::size_t{2}}) {
        const auto entry = static_cast<std::size_t>(rows.begins[position]);
        ASSERT_LT(rows.begins[position], rows.begins[position + 1]);
        targets.push_back(
            {NodeKind::feature, layer, static_cast<std::int64_t>(position), rows.features[entry]});
        wanted.push_back(rows.values[entry]);
      }
    }
    const NodeEdges found =
        edges_into(transformer, tokens, targets, LogitBaseline::mean, transcoders);
    const auto sources = static_cast<std::size_t>(found.edges.shape()[1]);
    EXPECT_EQ(found.features.size(), active);
    EXPECT_EQ(sources, tokens.size() * static_cast<std::size_t>(1 + stack.layers) + active);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const std::span<const float> row(found.edges.data() + i * sources, sources);
      const double scale = total_size(row) + std::abs(found.biases[i]);
      EXPECT_NEAR(found.reads[i], wanted[i], 1e-5 * scale) << "target " << i;
      EXPECT_NEAR(total(row) + found.biases[i], wanted[i], 1e-5 * scale) << "target " << i;
      // Of its own layer and later ones, a feature reads nothing.
      for (std::size_t f = 0; f < active; ++f) {
        if (i > 0 && found.features[f].layer >= targets[i].layer) {
          EXPECT_EQ(row[tokens.size() + f], 0);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GraphsOfTranscoders,
                         ::testing::ValuesIn(testing::toy_families(24)),
                         [](const auto& tested) { return tested.param.name; });

class TranscoderGraphs : public ::testing::Test {
 protected:
  const Transformer transformer = testing::toy_transformer(testing::small_config());
  const StackSpecification& stack = transformer.specification();
  const std::vector<std::int32_t> tokens = testing::random_tokens(transcoded_positions, 61, 3);
  const std::vector<SparseDictionary> transcoders = drawn_transcoders(stack, {.name = "top_k"});
};

TEST_F(TranscoderGraphs, AllOfTheLogitsIsAccountedFor) {
  const AttributionGraph graph =
      attribution_graph(transformer, tokens, {.transcoders = transcoders, .max_neurons = 40});
  EXPECT_EQ(nodes_of_kind(graph, NodeKind::feature).size(), 40U);
  EXPECT_EQ(nodes_of_kind(graph, NodeKind::error).size(), 27U);
  EXPECT_TRUE(nodes_of_kind(graph, NodeKind::neuron).empty());
  double found = graph.left_out + graph.of_biases;
  for (const NodeKind kind : {NodeKind::token, NodeKind::error}) {
    for (const std::size_t i : nodes_of_kind(graph, kind)) found += graph.nodes[i].influence;
  }
  EXPECT_NEAR(found, 1, 1e-6);
  // All features that reach the logits, which leave nothing out: sums of nodes are whole.
  const AttributionGraph whole =
      attribution_graph(transformer, tokens, {.transcoders = transcoders, .max_neurons = 9999});
  EXPECT_GT(nodes_of_kind(whole, NodeKind::feature).size(), 60U);
  EXPECT_EQ(whole.left_out, 0);
  for (std::size_t i = 0; i < whole.nodes.size(); ++i) {
    const GraphNode& node = whole.nodes[i];
    if (node.kind != NodeKind::feature && node.kind != NodeKind::logit) continue;
    double sum = node.bias;
    for (std::size_t s = 0; s < whole.nodes.size(); ++s) sum += double{whole.edge(i, s)};
    EXPECT_NEAR(sum, node.read, 1e-4);
    if (node.kind == NodeKind::feature) {
      EXPECT_NEAR(node.read, node.value, 1e-5);
    }
  }
}

TEST_F(TranscoderGraphs, PruningTakesErrorsWithFeatures) {
  const AttributionGraph graph =
      attribution_graph(transformer, tokens, {.transcoders = transcoders, .max_neurons = 60});
  const AttributionGraph small = pruned(graph, {.share = 0.6});
  const auto influence = [](const AttributionGraph& of) {
    double sum = 0;
    for (const NodeKind kind : {NodeKind::feature, NodeKind::error}) {
      for (const std::size_t i : nodes_of_kind(of, kind)) sum += of.nodes[i].influence;
    }
    return sum;
  };
  EXPECT_GE(influence(small), 0.6 * influence(graph));
  EXPECT_LT(nodes_of_kind(small, NodeKind::error).size(), 27U);
  EXPECT_EQ(small.transcoders.size(), 3U);
}

TEST_F(TranscoderGraphs, EffectsTakeAwayWhatFeaturesWrite) {
  for (const bool crosses : {false, true}) {
    const std::vector<SparseDictionary> all =
        drawn_transcoders(stack, {.name = "", .crosses_layers = crosses});
    const AttributionGraph graph =
        attribution_graph(transformer, tokens, {.transcoders = all, .max_neurons = 20});
    const std::vector<NodeEffect> effects = switch_off_effects(transformer, graph, 5);
    ASSERT_EQ(effects.size(), 5U);
    const auto word =
        static_cast<std::size_t>(graph.nodes[nodes_of_kind(graph, NodeKind::logit).front()].number);
    const auto value = [&](Editor* editor) {
      const RecordedPass pass(transformer, Texts{.source = {}, .target = tokens},
                              borrowed_editor(editor));
      const Tensor<float> logits = pass.logits(transcoded_positions - 1, transcoded_positions);
      return double{logits[static_cast<std::int64_t>(word)]} -
             total(logits.span()) / static_cast<double>(logits.size());
    };
    for (const NodeEffect& effect : effects) {
      const GraphNode& node = graph.nodes[effect.node];
      ASSERT_EQ(node.kind, NodeKind::feature);
      const Dictionary& own =
          all[static_cast<std::size_t>(stack.layers - 1 - node.layer)].dictionary();
      std::vector<Intervention> edits;
      for (std::int64_t p = 0; p < own.specification().points(); ++p) {
        AddVector taken;
        for (std::int64_t c = 0; c < stack.channels; ++c) {
          const std::int64_t row = node.number * own.specification().points() + p;
          taken.vector.push_back(-static_cast<float>(node.value) *
                                 own.weights().decoder[row * stack.channels + c]);
        }
        edits.push_back({.point = {PointKind::feed_forward_out, node.layer + p},
                         .where = {.first_position = node.position, .last_position = node.position},
                         .change = taken});
      }
      Interventions off(stack, edits);
      EXPECT_NEAR(effect.change, value(&off) - value(nullptr), 1e-4);
    }
  }
}

// A path is switched off in the model itself: what its features write is taken away, in one layer
// or across layers, and the model's pass is its own where nothing is taken.
TEST_F(TranscoderGraphs, CausesAreMeasuredOnTheModel) {
  for (const bool crosses : {false, true}) {
    const std::vector<SparseDictionary> all =
        drawn_transcoders(stack, {.name = "", .crosses_layers = crosses});
    const WordCauses causes =
        word_causes(transformer, tokens, {.transcoders = all, .max_neurons = 60});
    EXPECT_EQ(causes.unit, NodeKind::feature);
    const std::vector<double> whole = next_token_probabilities(transformer, tokens);
    const auto word = static_cast<std::size_t>(causes.token);
    EXPECT_NEAR(causes.probability, whole[word], 1e-6);
    ASSERT_FALSE(causes.paths.empty());
    const RecordedPass pass(transformer, Texts{.source = {}, .target = tokens});
    for (const CausePath& path : causes.paths) {
      const Dictionary& own =
          all[static_cast<std::size_t>(stack.layers - 1 - path.layer)].dictionary();
      const Tensor<float> x = pass.computed({PointKind::norm_2_normalized, path.layer});
      const Tensor<float> acts = [&] {
        Tensor<float> dense(Shape{transcoded_positions, features_of_layer});
        own.encode(x.view().reshape({transcoded_positions, stack.channels})).copy_to(dense);
        return dense;
      }();
      std::vector<Intervention> edits;
      for (std::int64_t p = 0; p < own.specification().points(); ++p) {
        AddVector taken{std::vector<float>(static_cast<std::size_t>(stack.channels))};
        for (const std::int64_t feature : path.units) {
          const float activation = acts.view()(path.position, feature);
          EXPECT_GT(activation, 0);
          const std::int64_t row = feature * own.specification().points() + p;
          for (std::int64_t c = 0; c < stack.channels; ++c) {
            taken.vector[static_cast<std::size_t>(c)] -=
                activation * own.weights().decoder[row * stack.channels + c];
          }
        }
        edits.push_back({.point = {PointKind::feed_forward_out, path.layer + p},
                         .where = {.first_position = path.position, .last_position = path.position},
                         .change = taken});
      }
      Interventions off(stack, edits);
      const std::vector<double> without = next_token_probabilities(transformer, tokens, &off);
      EXPECT_NEAR(path.without, without[word], 1e-5);
      EXPECT_NEAR(path.instead_probability, without[static_cast<std::size_t>(path.instead)], 1e-5);
      EXPECT_EQ(path.controls.size(), 8U);
      EXPECT_EQ(std::set(path.controls.begin(), path.controls.end()).size(), 8U);
    }
  }
}

TEST_F(TranscoderGraphs, RefusesWhatIsNoTranscoderOfEachLayer) {
  using enum ErrorCode;
  const auto graph = [&](const std::vector<SparseDictionary>& of, const Transformer& model) {
    attribution_graph(model, testing::random_tokens(4, 61, 1), {.transcoders = of});
  };
  std::vector<SparseDictionary> some(transcoders.begin(), transcoders.begin() + 2);
  testing::expect_error(
      invalid_argument, [&] { graph(some, transformer); }, "no transcoder for layers 0");
  std::vector<SparseDictionary> twice = transcoders;
  twice.push_back(transcoders.front());
  testing::expect_error(
      invalid_argument, [&] { graph(twice, transformer); }, "layer 2 has two transcoders");

  StackSpecification wide = testing::small_config();
  wide.channels = 64;
  testing::expect_error(
      invalid_argument, [&] { graph(transcoders, testing::random_transformer(wide)); }, "32 inputs",
      "64 wide");

  const auto with = [&](const std::string& input, const std::string& output,
                        InputNorm norm = InputNorm::none) {
    std::vector<SparseDictionary> all = transcoders;
    const Dictionary& last = transcoders.back().dictionary();
    DictionarySpecification own = last.specification();
    own.input_point = input;
    own.output_points = {output};
    own.input_norm = norm;
    DictionaryWeights weights;
    weights.encoder = drawn({features_of_layer, 32}, 1, 1);
    weights.encoder_bias = Tensor<float>(Shape{features_of_layer});
    weights.decoder = drawn({features_of_layer, 1, 32}, 1, 1);
    weights.decoder_bias = Tensor<float>(Shape{32});
    all.back() = SparseDictionary(std::make_shared<const Dictionary>(own, std::move(weights), ""));
    return all;
  };
  const std::string mid = "blocks.0.hook_resid_mid", out = "blocks.0.hook_mlp_out";
  testing::expect_error(
      invalid_argument, [&] { graph(with("blocks.0.hook_resid_pre", out), transformer); },
      "blocks.0.hook_resid_pre", "blocks.0.ln2.hook_normalized");
  testing::expect_error(
      invalid_argument, [&] { graph(with(mid, "blocks.0.hook_resid_post"), transformer); },
      "blocks.0.hook_resid_post", "expected blocks.0.hook_mlp_out");
  testing::expect_error(
      invalid_argument, [&] { graph(with(mid, "blocks.1.hook_mlp_out"), transformer); },
      "expected blocks.0.hook_mlp_out");
  testing::expect_error(
      invalid_argument, [&] { graph(with(mid, mid), transformer); }, "needs transcoders");
  testing::expect_error(
      unsupported, [&] { graph(with(mid, out, InputNorm::layer_norm), transformer); },
      "normalises");
  testing::expect_error(
      invalid_argument,
      [&] {
        edges_into(transformer, tokens, {{NodeKind::neuron, 0, 3, 1}}, LogitBaseline::mean,
                   transcoders);
      },
      "a neuron is no target", "feature");
  testing::expect_error(
      invalid_argument,
      [&] {
        edges_into(transformer, tokens, {{NodeKind::feature, 0, 3, features_of_layer}},
                   LogitBaseline::mean, transcoders);
      },
      "features 0 to 47");
  testing::expect_error(
      invalid_argument,
      [&] {
        attribution_graph(transformer, tokens,
                          {.transcoders = transcoders, .max_neurons = 100, .max_bytes = 1 << 18});
      },
      "features of 9 tokens take");
  // It can be stopped after each layer whose active features were found.
  const LayerTranscoders of_layers(transcoders, transformer);
  const RecordedPass pass(transformer,
                          Texts{.source = {}, .target = {tokens.begin(), tokens.end()}});
  std::int64_t found = 0;
  const auto stop = [&](std::int64_t active) {
    found = active;
    throw std::runtime_error("stop");
  };
  EXPECT_THROW(TranscodedPass(of_layers, pass, stop), std::runtime_error);
  EXPECT_EQ(found, TranscodedPass(of_layers, pass).first(1));
  AttributionGraph torn = attribution_graph(transformer, tokens, {.transcoders = transcoders});
  torn.transcoders.clear();
  testing::expect_error(
      invalid_argument, [&] { switch_off_effects(transformer, torn, 3); }, "do not have");
}

}  // namespace
}  // namespace heed
