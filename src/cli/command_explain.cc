// heed explain: heads and neurons, read from the weights.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/result_file.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "engine/views/token_json.h"
#include "microscope/explain/head_circuits.h"
#include "microscope/explain/neurons.h"
#include "microscope/explain/weight_processing.h"
#include "microworld/microworld.h"

namespace heed::cli {
namespace {

struct ExplainOptions {
  std::string model = "starter";
  std::string kind = "value";  // of composition
  std::int64_t layer = 0;
  std::int64_t head = 0;
  std::int64_t neuron = 0;
  std::int64_t vectors = 6;
  std::string text;
  std::int64_t top = 8;    // rows
  std::int64_t words = 8;  // at each end of a direction
  bool raw_weights = false;
  std::string out;
  bool json = false;
};

// The model with processed weights, or as stored with --raw-weights.
Transformer readable_weights(const ExplainOptions& options, const Transformer& transformer) {
  if (options.raw_weights) return process_weights(transformer, {false, false, false, false});
  return process_weights(transformer);
}

std::string head_name(std::int64_t index, std::int64_t heads) {
  return fmt::format("L{}H{}", index / heads, index % heads);
}

std::string words_of_reading(const LoadedModel& model, const std::vector<ProjectedToken>& tokens,
                             int width) {
  std::string words;
  for (const ProjectedToken& token : tokens) {
    words += (words.empty() ? "" : " ") + visible(model.token_bytes(token.token));
  }
  return fit(words, width);
}

OrderedJson reading_json(const LoadedModel& model, const std::vector<ProjectedToken>& tokens) {
  OrderedJson list = OrderedJson::array();
  for (const ProjectedToken& token : tokens) {
    OrderedJson row = token_json(model, token.token);
    row["score"] = json_number(token.score);
    list.push_back(std::move(row));
  }
  return list;
}

// --- composition

CompositionKind kind_of(const std::string& name) {
  if (name == "query") return CompositionKind::query;
  return name == "key" ? CompositionKind::key : CompositionKind::value;
}

void write_composition(const ExplainOptions& options, const LoadedModel& model,
                       const Tensor<float>& scores) {
  const StackSpecification& config = model.transformer.specification();
  const std::int64_t all = config.layers * config.heads();
  write_result(
      options.out,
      {.text = {.title = "Head composition by the " + options.kind,
                .caption = fmt::format("Model {}. ‖W_OV · W‖ / (‖W_OV‖ ‖W‖) of each head (row) "
                                       "and every later one (column); {} weights.",
                                       model.name, options.raw_weights ? "raw" : "processed")},
       .draw =
           [&](const FigureText& text) {
             std::vector<std::string> names;
             for (std::int64_t i = 0; i < all; ++i) names.push_back(head_name(i, config.heads()));
             return draw_heat_map({.values = scores.view().reshape({all, all}),
                                   .row_labels = names,
                                   .column_labels = names,
                                   .row_axis = "writes",
                                   .column_axis = "reads",
                                   .value_name = "score"},
                                  text);
           },
       .arrays = {{options.kind + "_composition", scores.view()}}});
}

void explain_composition(const ExplainOptions& options) {
  check_out(options.out);
  const LoadedModel model = load_model(options.model);
  const StackSpecification& config = model.transformer.specification();
  const Tensor<float> scores =
      composition_scores(readable_weights(options, model.transformer), kind_of(options.kind));
  write_composition(options, model, scores);

  const std::int64_t all = config.layers * config.heads();
  std::vector<std::int64_t> pairs;
  for (std::int64_t i = 0; i < all * all; ++i) {
    if (i / all / config.heads() < i % all / config.heads()) pairs.push_back(i);
  }
  const auto count = std::min(options.top, std::ssize(pairs));
  std::partial_sort(pairs.begin(), pairs.begin() + count, pairs.end(),
                    [&](std::int64_t a, std::int64_t b) { return scores[a] > scores[b]; });
  pairs.resize(static_cast<std::size_t>(count));
  if (options.json) {
    OrderedJson rows = OrderedJson::array();
    for (const std::int64_t pair : pairs) {
      rows.push_back({{"writes", head_name(pair / all, config.heads())},
                      {"reads", head_name(pair % all, config.heads())},
                      {"score", json_number(scores[pair])}});
    }
    return print_json({{"model", model.name}, {"kind", options.kind}, {"pairs", std::move(rows)}});
  }
  const Ink ink(standard_output());
  Table table({{"writes"}, {"reads"}, {"score", Align::right}});
  for (const std::int64_t pair : pairs) {
    table.add({head_name(pair / all, config.heads()), head_name(pair % all, config.heads()),
               fmt::format("{:.3f}", scores[pair])});
  }
  print("\n" + ink.title("Head composition by the " + options.kind) +
        ink.quiet("  the largest possible score is 1\n\n") + table.text(ink));
}

// --- singular vectors of a head

struct ReadCircuit {
  const char* name;
  const char* left;
  const char* right;
  SingularVectors vectors;
  std::vector<VocabularyProjection> left_words;
  std::vector<VocabularyProjection> right_words;
};

ReadCircuit read_circuit(const Transformer& transformer, HeadCircuit circuit,
                         const ExplainOptions& options) {
  ReadCircuit read{.name = "W_OV", .left = "reads", .right = "writes"};
  if (circuit == HeadCircuit::query_key) read = {.name = "W_QK", .left = "query", .right = "key"};
  read.vectors = singular_vectors(transformer, circuit, options.layer, options.head);
  const std::int64_t count = std::min(options.vectors, std::ssize(read.vectors.values));
  const auto first = [count](const Tensor<float>& rows) { return rows.view().slice(0, 0, count); };
  read.left_words = project_to_embeddings(transformer, first(read.vectors.left), options.words);
  read.right_words =
      circuit == HeadCircuit::query_key
          ? project_to_embeddings(transformer, first(read.vectors.right), options.words)
          : project_to_logits(transformer, first(read.vectors.right), options.words);
  return read;
}

OrderedJson circuit_json(const LoadedModel& model, const ReadCircuit& read) {
  OrderedJson rows = OrderedJson::array();
  for (std::size_t i = 0; i < read.left_words.size(); ++i) {
    const auto both = [&](const VocabularyProjection& words) {
      return OrderedJson{{"most", reading_json(model, words.most)},
                         {"least", reading_json(model, words.least)}};
    };
    rows.push_back({{"value", json_number(read.vectors.values[i])},
                    {read.left, both(read.left_words[i])},
                    {read.right, both(read.right_words[i])}});
  }
  return rows;
}

void print_circuit(const LoadedModel& model, const ReadCircuit& read, const Ink& ink, int width) {
  Table table({{read.name, Align::right}, {""}, {read.left}, {read.right}});
  const int room = std::max(12, (width - 22) / 2);
  for (std::size_t i = 0; i < read.left_words.size(); ++i) {
    const auto row = [&](const std::string& value, const char* sign, auto&& end) {
      table.add({value, sign, words_of_reading(model, end(read.left_words[i]), room),
                 words_of_reading(model, end(read.right_words[i]), room)});
    };
    row(fmt::format("{:.2f}", read.vectors.values[i]), "+",
        [](const VocabularyProjection& words) { return words.most; });
    row("", "−", [](const VocabularyProjection& words) { return words.least; });
  }
  print(table.text(ink) + "\n");
}

void write_circuits(const ExplainOptions& options, const LoadedModel& model,
                    const std::vector<ReadCircuit>& circuits) {
  std::vector<std::vector<float>> values;
  Result result{
      .text = {.title = fmt::format("Singular values of head L{}H{}", options.layer, options.head),
               .caption = fmt::format("Model {}. Of W_QK and W_OV; {} weights.", model.name,
                                      options.raw_weights ? "raw" : "processed")}};
  values.reserve(circuits.size());
  for (const ReadCircuit& circuit : circuits) {
    const std::string name = circuit.name;
    values.emplace_back(circuit.vectors.values.begin(), circuit.vectors.values.end());
    result.arrays.push_back({name + ".singular_values",
                             View<const float>(values.back().data(), {std::ssize(values.back())})});
    result.arrays.push_back({name + ".left", circuit.vectors.left.view()});
    result.arrays.push_back({name + ".right", circuit.vectors.right.view()});
  }
  result.draw = [&](const FigureText& text) {
    constexpr std::size_t bars_per_circuit = 16;
    BarFigure bars{.value_name = "singular value"};
    for (const ReadCircuit& circuit : circuits) {
      for (std::size_t i = 0; i < std::min(bars_per_circuit, circuit.vectors.values.size()); ++i) {
        bars.labels.push_back(fmt::format("{} {}", circuit.name, i));
        bars.values.push_back(circuit.vectors.values[i]);
      }
    }
    return draw_bars(bars, text);
  };
  write_result(options.out, result);
}

void explain_head(const ExplainOptions& options) {
  check_out(options.out);
  const LoadedModel model = load_model(options.model);
  const Transformer transformer = readable_weights(options, model.transformer);
  std::vector<ReadCircuit> circuits;
  for (const HeadCircuit circuit : {HeadCircuit::query_key, HeadCircuit::output_value}) {
    circuits.push_back(read_circuit(transformer, circuit, options));
  }
  write_circuits(options, model, circuits);
  if (options.json) {
    OrderedJson document{{"model", model.name}, {"layer", options.layer}, {"head", options.head}};
    for (const ReadCircuit& circuit : circuits) {
      document[circuit.name] = circuit_json(model, circuit);
    }
    return print_json(document);
  }
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  print("\n" + ink.title(fmt::format("Block {}, head {}", options.layer, options.head)) +
        ink.quiet("  its largest singular vectors, projected to tokens\n\n"));
  for (const ReadCircuit& circuit : circuits) print_circuit(model, circuit, ink, terminal.width);
}

// --- neurons

constexpr std::int64_t stories_searched = 300;

std::string corpus_of(const ExplainOptions& options) {
  if (!options.text.empty()) return read_text_file(options.text);
  return microworld::corpus(microworld::Microworld(1), 0, stories_searched);
}

// What the contexts were found in, and how to give another text where the model was not made for
// it.
std::string source_line(const ExplainOptions& options, const LoadedModel& model) {
  if (!options.text.empty()) return fmt::format("Contexts in {}:", printable(options.text));
  const std::string stories =
      fmt::format("Contexts in {} stories of the microworld", stories_searched);
  if (model.is_starter()) return stories + ":";
  return stories +
         ", which this model has not read.\n  For a text of its own kind: --text book.txt";
}

OrderedJson neuron_json(const ExplainOptions& options, const LoadedModel& model,
                        const NeuronMemory& memory) {
  OrderedJson contexts = OrderedJson::array();
  for (const NeuronContext& context : memory.contexts) {
    OrderedJson activations = OrderedJson::array();
    for (const float value : context.activations) activations.push_back(json_number(value));
    contexts.push_back({{"position", context.position},
                        {"activation", json_number(context.activation)},
                        {"tokens", tokens_json(model, context.tokens)},
                        {"activations", std::move(activations)},
                        {"peak", context.peak}});
  }
  return {{"model", model.name},
          {"layer", memory.id.layer},
          {"neuron", memory.id.neuron},
          {"source", options.text.empty() ? "microworld" : options.text},
          {"mean_activation", json_number(memory.mean_activation)},
          {"active_share", json_number(memory.active_share)},
          {"largest", json_number(memory.largest)},
          {"promotes", reading_json(model, memory.says.most)},
          {"suppresses", reading_json(model, memory.says.least)},
          {"contexts", std::move(contexts)}};
}

void print_neuron(const ExplainOptions& options, const LoadedModel& model,
                  const NeuronMemory& memory) {
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  print("\n" + ink.title(fmt::format("Block {}, neuron {}", memory.id.layer, memory.id.neuron)) +
        ink.quiet(fmt::format("  above zero at {} of the tokens, at most {:.2f}\n\n",
                              percent(memory.active_share), memory.largest)) +
        ink.quiet("  " + source_line(options, model) + "\n\n"));
  for (const NeuronContext& context : memory.contexts) {
    std::string before;
    std::string after;
    for (std::int64_t i = 0; i < std::ssize(context.tokens); ++i) {
      if (i == context.peak) continue;
      (i < context.peak ? before : after) += printable_lines(model.token_bytes(context.tokens[i]));
    }
    for (std::string* side : {&before, &after}) std::ranges::replace(*side, '\n', ' ');
    const std::string peak = visible(model.token_bytes(context.tokens[context.peak]));
    print(pad_left(fmt::format("{:.2f}", context.activation), 8) + "  " + ink.quiet(before) +
          ink.bold("[" + peak + "]") + ink.quiet(after) + "\n");
  }
  print("\n  promotes    " + words_of_reading(model, memory.says.most, terminal.width - 14) +
        "\n  suppresses  " + words_of_reading(model, memory.says.least, terminal.width - 14) +
        "\n");
}

void write_neuron(const ExplainOptions& options, const LoadedModel& model,
                  const NeuronMemory& memory) {
  std::vector<float> activations;
  std::vector<std::int32_t> positions;
  for (const NeuronContext& context : memory.contexts) {
    activations.push_back(context.activation);
    positions.push_back(static_cast<std::int32_t>(context.position));
  }
  const std::int64_t count = std::ssize(activations);
  write_result(options.out,
               {.text = {.title = fmt::format("Contexts of neuron {} of block {}", memory.id.neuron,
                                              memory.id.layer),
                         .caption = fmt::format("Model {}. mlp.hook_post where it is largest; "
                                                "above zero at {} of the tokens.",
                                                model.name, percent(memory.active_share))},
                .draw =
                    [&](const FigureText& text) {
                      BarFigure bars{.value_name = "activation"};
                      for (const NeuronContext& context : memory.contexts) {
                        std::string label;
                        for (std::int64_t i = std::max<std::int64_t>(0, context.peak - 3);
                             i <= context.peak; ++i) {
                          label += visible(model.token_bytes(context.tokens[i]));
                        }
                        bars.labels.push_back(label);
                        bars.values.push_back(context.activation);
                      }
                      return draw_bars(bars, text);
                    },
                .arrays = {{"activations", View<const float>(activations.data(), {count})},
                           {"positions", View<const std::int32_t>(positions.data(), {count})}}});
}

void explain_neuron(const ExplainOptions& options) {
  check_out(options.out);
  const LoadedModel model = load_model(options.model);
  const std::vector<std::int32_t> corpus = model.encode(corpus_of(options));
  ProgressLine line;
  const NeuronId neuron{options.layer, options.neuron};
  const NeuronMemory memory =
      find_neuron_contexts(
          model.transformer, corpus, std::span(&neuron, 1),
          {.top = options.top, .progress = line.callback(), .stop = interrupt_flag()})
          .front();
  line.clear();
  write_neuron(options, model, memory);
  if (options.json) return print_json(neuron_json(options, model, memory));
  print_neuron(options, model, memory);
}

// The options of all three.
Command add_part(Command parent, const std::string& name, const std::string& description,
                 ExplainOptions& options) {
  Command command = add_command(parent, name, description);
  add_model_option(*command, options.model);
  add_out_option(*command, options.out);
  add_json_option(*command, options.json);
  return command;
}

void add_top(Command command, ExplainOptions& options, const std::string& description) {
  command.add_option("--top", options.top, description)
      ->check(at_least(1))
      ->capture_default_str()
      ->type_name("N");
}

void add_raw_weights(Command command, ExplainOptions& options) {
  command.add_flag("--raw-weights", options.raw_weights,
                   "Use weights as stored, without folding or centring");
}

void add_layer(Command command, ExplainOptions& options) {
  command.add_option("--layer", options.layer, "Choose the layer, from 0")
      ->required()
      ->type_name("L");
}

}  // namespace

void add_explain_command(Command app) {
  Command command = add_command(app, "explain", "Explain heads and neurons from the weights");
  command->require_subcommand(1);
  const auto make = [] { return std::make_shared<ExplainOptions>(); };

  auto options = make();
  Command part = add_part(*command, "composition",
                          "Score which heads read from which earlier heads", *options);
  add_top(*part, *options, "List N pairs of heads");
  part->add_option("--kind", options->kind, "Compose through the query, key or value")
      ->check(one_of({"query", "key", "value"}))
      ->capture_default_str()
      ->type_name("KIND");
  add_raw_weights(*part, *options);
  part->callback([options] { explain_composition(*options); });

  options = make();
  part = add_part(*command, "head", "Project a head's W_QK and W_OV to tokens", *options);
  part->add_option("--words", options->words, "Show N tokens for each vector")
      ->check(at_least(1))
      ->capture_default_str()
      ->type_name("N");
  add_layer(*part, *options);
  part->add_option("--head", options->head, "Choose the head, from 0")->required()->type_name("H");
  part->add_option("--vectors", options->vectors, "Show N singular vectors")
      ->check(at_least(1))
      ->capture_default_str()
      ->type_name("N");
  add_raw_weights(*part, *options);
  part->callback([options] { explain_head(*options); });

  options = make();
  part = add_part(*command, "neuron", "Show where a neuron fires and what it promotes", *options);
  add_top(*part, *options, "List N contexts and N promoted tokens");
  add_layer(*part, *options);
  part->add_option("--neuron", options->neuron, "Choose the neuron, from 0")
      ->required()
      ->type_name("N");
  add_text_file_option(*part, options->text);
  part->get_option("--text")->description(
      "Search this plain text for contexts [300 stories of the microworld]");
  part->callback([options] { explain_neuron(*options); });
}

}  // namespace heed::cli
