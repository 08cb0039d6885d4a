// heed graph: the paths that decided a word, or features of transcoders, each with what happens
// without it; the attribution graph as a file.
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/lens.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "engine/carried_transcoders.h"
#include "engine/views/graph_json.h"
#include "engine/views/token_json.h"
#include "microscope/explain/attribution_graph.h"
#include "microscope/intervene/graph_effects.h"

namespace heed::cli {
namespace {

struct GraphCommandOptions {
  std::string model = "starter";
  TextOptions text;
  std::string logit;
  std::int64_t neurons = 256;
  std::optional<std::int64_t> paths;
  std::string transcoders;
  std::optional<std::int64_t> features;
  std::string out;
  bool json = false;
};

void stop_if_interrupted() {
  require(!stop_requested(interrupt_flag()), ErrorCode::interrupted,
          "stopped while computing the attribution graph");
}

constexpr int word_columns = 10;

constexpr const char* no_transcoders = "none";

// By what they answer to: “blue”, “green” +2.
std::string names_of_features(const LoadedModel& model, const CausePath& path) {
  std::string named;
  const OrderedJson name = feature_name_json(model, path.layer, path.units.front());
  for (const OrderedJson& word : name["words"]) {
    const std::string next = visible(word["token"]["text"].get<std::string>());
    if (!named.empty() && display_width(named) + display_width(next) > 2 * word_columns) break;
    named += (named.empty() ? "" : " ") + next;
  }
  if (named.empty()) named = fmt::format("F{}", path.units.front());
  return path.units.size() == 1 ? named : fmt::format("{} +{}", named, path.units.size() - 1);
}

void print_causes(const ExplainedText& text, const WordCauses& causes) {
  const Ink ink(standard_output());
  Table table({{"path", Align::left},
               {"without it", Align::right},
               {"then", Align::left},
               {"control", Align::right},
               {"", Align::left}});
  const auto named = [&](std::int32_t token) { return fit(text.name(token), word_columns); };
  const bool of_features = causes.unit == NodeKind::feature;
  bool has_cause = false;
  for (const CausePath& path : causes.paths) {
    const bool is_cause = path.is_cause(causes.probability);
    has_cause = has_cause || is_cause;
    table.add({fmt::format("{}@{} → {} of L{}@{}",
                           named(text.tokens[static_cast<std::size_t>(path.token)]), path.token,
                           of_features ? names_of_features(text.model, path)
                                       : std::to_string(path.units.size()),
                           path.layer, path.position),
               percent(path.without), named(path.instead) + " " + percent(path.instead_probability),
               percent(path.strongest_control(causes.probability)),
               is_cause ? ink.bold("cause") : ink.quiet("no")});
  }
  if (!has_cause) table.add_line("No single path decides.");
  print("\n" + ink.title("Because of") +
        ink.quiet(fmt::format("  {} is predicted with {}\n\n", named(causes.token),
                              percent(causes.probability))) +
        table.text(ink));
  const std::size_t controls = causes.paths.empty() ? 0 : causes.paths.front().controls.size();
  print(ink.quiet(
      of_features
          ? fmt::format("\n  A path: a token, and features of a block's transcoder at a position "
                        "that read\n"
                        "  most from it, named by the words that the first of them answers to, and "
                        "how many\n"
                        "  more. Without it: what they write is taken away. Control: as much in "
                        "the directions\n"
                        "  of as many other features, drawn; of {}, the one that changes the "
                        "probability most.\n",
                        controls)
          : fmt::format(
                "\n  A path: a token, and neurons of a block at a position that read most from "
                "it,\n"
                "  which are switched off together. Control: as many other neurons, drawn; of {},\n"
                "  the one that changes the probability most.\n",
                controls)));
}

// Of the paths: of the model, where heed carries them, unless neurons are wanted.
std::vector<SparseDictionary> transcoders_of_paths(const GraphCommandOptions& options,
                                                   const LoadedModel& model) {
  const auto carried = options.transcoders == no_transcoders ? nullptr : carried_transcoders(model);
  return carried == nullptr ? std::vector<SparseDictionary>() : carried->of_layers;
}

// How much of the logits' edges ends in what transcoders leave out.
double share_of_errors(const AttributionGraph& graph) {
  double share = 0;
  for (const std::size_t i : nodes_of_kind(graph, NodeKind::error)) {
    share += graph.nodes[i].influence;
  }
  return share;
}

void print_features(const ExplainedText& text, const AttributionGraph& graph,
                    const std::vector<NodeEffect>& effects) {
  const Ink ink(standard_output());
  Table table({{"feature", Align::left},
               {"at", Align::left},
               {"activation", Align::right},
               {"influence", Align::right},
               {"logit without it", Align::right}});
  for (const NodeEffect& effect : effects) {
    const GraphNode& node = graph.nodes[effect.node];
    const std::int32_t token = graph.tokens[static_cast<std::size_t>(node.position)];
    table.add({fmt::format("L{}F{}", node.layer, node.number),
               fmt::format("{}@{}", fit(text.name(token), word_columns), node.position),
               fmt::format("{:.2f}", node.value), percent(node.influence),
               fmt::format("{:+.2f}", effect.change)});
  }
  const GraphNode& word = graph.nodes[nodes_of_kind(graph, NodeKind::logit).front()];
  print("\n" + ink.title("Features") +
        ink.quiet(fmt::format("  {} is predicted with {}\n\n",
                              fit(text.name(static_cast<std::int32_t>(word.number)), word_columns),
                              percent(word.value))) +
        table.text(ink));
  print(ink.quiet(fmt::format(
      "\n  {} of the influence ends in what the transcoders leave out, {} in features that are\n"
      "  no nodes. Without it: what the feature writes is taken away in the model itself.\n",
      percent(share_of_errors(graph)), percent(graph.left_out))));
}

OrderedJson features_json(const LoadedModel& model, const AttributionGraph& graph,
                          const std::vector<NodeEffect>& effects) {
  OrderedJson features = OrderedJson::array();
  for (const NodeEffect& effect : effects) {
    const GraphNode& node = graph.nodes[effect.node];
    features.push_back({{"layer", node.layer},
                        {"feature", node.number},
                        {"position", node.position},
                        {"activation", json_number(node.value)},
                        {"influence", json_number(node.influence)},
                        {"change", json_number(effect.change)}});
  }
  const GraphNode& word = graph.nodes[nodes_of_kind(graph, NodeKind::logit).front()];
  return {{"token", token_json(model, static_cast<std::int32_t>(word.number))},
          {"probability", json_number(word.value)},
          {"features", std::move(features)},
          {"share_of_errors", json_number(share_of_errors(graph))},
          {"left_out", json_number(graph.left_out)}};
}

void explain(const GraphCommandOptions& options) {
  require(options.out.empty() || std::filesystem::path(options.out).extension() == ".json",
          ErrorCode::invalid_argument, "--out writes a graph as .json, not {}", options.out);
  if (options.transcoders.empty() || options.transcoders == no_transcoders) {
    if (options.features) fail_usage("--features needs --transcoders: a directory or \"starter\"");
  } else if (options.paths) {
    fail_usage("--paths excludes --transcoders, which lists features, unless it is \"none\"");
  }
  const LoadedModel model = load_model(options.model);
  const ExplainedText text{model, read_tokens(options.text, model)};
  OrderedJson document{{"model", model.name}, {"tokens", tokens_json(model, text.tokens)}};
  AttributionGraph graph;
  const bool has_features = !options.transcoders.empty() && options.transcoders != no_transcoders;
  const std::vector<SparseDictionary> transcoders =
      has_features ? load_sparse_dictionaries(options.transcoders)
                   : transcoders_of_paths(options, model);
  if (!options.out.empty() || has_features) {
    GraphOptions wanted{
        .transcoders = transcoders, .max_neurons = options.neurons, .poll = stop_if_interrupted};
    if (!options.logit.empty()) {
      wanted.logits = {single_token(model, options.logit, "--logit")};
    }
    graph = attribution_graph(model.transformer, text.tokens, wanted);
  }
  if (!options.out.empty()) {
    write_text_file(options.out, json_text(graph_json(model, graph, "")));
  }
  if (has_features) {
    const std::vector<NodeEffect> effects = switch_off_effects(
        model.transformer, graph, static_cast<std::size_t>(options.features.value_or(10)));
    if (!options.json) return print_features(text, graph, effects);
    document.update(features_json(model, graph, effects));
    return print_json(document);
  }
  const WordCauses causes =
      word_causes(model.transformer, text.tokens,
                  {.paths = static_cast<std::size_t>(options.paths.value_or(3)),
                   .transcoders = transcoders,
                   .max_bytes = GraphOptions{}.max_bytes,
                   .poll = stop_if_interrupted});
  if (!options.json) return print_causes(text, causes);
  document.update(causes_json(model, text.tokens, causes, FeatureNames::carried));
  print_json(document);
}

}  // namespace

void add_graph_command(Command app) {
  Command command =
      add_command(app, "graph", "Show the paths that decide the next word, and write the graph");
  auto options = std::make_shared<GraphCommandOptions>();
  add_model_option(*command, options->model);
  add_text_options(*command, options->text);
  command->add_option("--paths", options->paths, "Show N paths, one from each token at most [3]")
      ->check(between(1, 32));
  command
      ->add_option("--out", options->out,
                   "Write the graph for the viewers of circuit-tracer and Neuronpedia")
      ->type_name("FILE.json");
  command
      ->add_option("--transcoders", options->transcoders,
                   "List features: of a directory or \"starter\"; \"none\": paths of neurons")
      ->type_name("DIR");
  command
      ->add_option("--features", options->features, "List N features of the largest influence [10]")
      ->check(between(1, 1000));
  command
      ->add_option("--neurons", options->neurons,
                   "Write N neurons, or features, of the largest influence")
      ->capture_default_str()
      ->check(at_least(1));
  command
      ->add_option("--logit", options->logit,
                   "Write the graph of this token [the likeliest with 95 % together]")
      ->type_name("TOKEN");
  add_json_option(*command, options->json);
  command->callback([options] { explain(*options); });
}

}  // namespace heed::cli
