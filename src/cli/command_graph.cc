// heed graph: the paths that decided a word, each with what happens without it; the attribution
// graph as a file.
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>

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
  std::int64_t paths = 3;
  std::string out;
  bool json = false;
};

void stop_if_interrupted() {
  require(!stop_requested(interrupt_flag()), ErrorCode::interrupted,
          "stopped while computing the attribution graph");
}

constexpr int word_columns = 10;

void print_causes(const ExplainedText& text, const WordCauses& causes) {
  const Ink ink(standard_output());
  Table table({{"path", Align::left},
               {"without it", Align::right},
               {"then", Align::left},
               {"control", Align::right},
               {"", Align::left}});
  const auto named = [&](std::int32_t token) { return fit(text.name(token), word_columns); };
  bool has_cause = false;
  for (const CausePath& path : causes.paths) {
    const bool is_cause = path.is_cause(causes.probability);
    has_cause = has_cause || is_cause;
    table.add({fmt::format("{}@{} → {} of L{}@{}",
                           named(text.tokens[static_cast<std::size_t>(path.token)]), path.token,
                           path.neurons.size(), path.layer, path.position),
               percent(path.without), named(path.instead) + " " + percent(path.instead_probability),
               percent(path.strongest_control(causes.probability)),
               is_cause ? ink.bold("cause") : ink.quiet("no")});
  }
  if (!has_cause) table.add_line("No single path decides.");
  print("\n" + ink.title("Because of") +
        ink.quiet(fmt::format("  {} is predicted with {}\n\n", named(causes.token),
                              percent(causes.probability))) +
        table.text(ink));
  print(ink.quiet(fmt::format(
      "\n  A path: a token, and neurons of a block at a position that read most from it,\n"
      "  which are switched off together. Control: as many other neurons, drawn; of {},\n"
      "  the one that changes the probability most.\n",
      causes.paths.empty() ? 0 : causes.paths.front().controls.size())));
}

void explain(const GraphCommandOptions& options) {
  require(options.out.empty() || std::filesystem::path(options.out).extension() == ".json",
          ErrorCode::invalid_argument, "--out writes a graph as .json, not {}", options.out);
  const LoadedModel model = load_model(options.model);
  const ExplainedText text{model, read_tokens(options.text, model)};
  if (!options.out.empty()) {
    GraphOptions graph{.max_neurons = options.neurons, .poll = stop_if_interrupted};
    if (!options.logit.empty()) {
      graph.logits = {single_token(model, options.logit, "--logit")};
    }
    write_text_file(
        options.out,
        json_text(graph_json(model, attribution_graph(model.transformer, text.tokens, graph), "")));
  }
  const WordCauses causes = word_causes(model.transformer, text.tokens,
                                        {.paths = static_cast<std::size_t>(options.paths),
                                         .max_bytes = GraphOptions{}.max_bytes,
                                         .poll = stop_if_interrupted});
  if (!options.json) return print_causes(text, causes);
  OrderedJson document{{"model", model.name}, {"tokens", tokens_json(model, text.tokens)}};
  document.update(causes_json(model, text.tokens, causes));
  print_json(document);
}

}  // namespace

void add_graph_command(Command app) {
  Command command =
      add_command(app, "graph", "Show the paths that decide the next word, and write the graph");
  auto options = std::make_shared<GraphCommandOptions>();
  add_model_option(*command, options->model);
  add_text_options(*command, options->text);
  command->add_option("--paths", options->paths, "Show N paths, one from each token at most")
      ->capture_default_str()
      ->check(between(1, 32));
  command
      ->add_option("--out", options->out,
                   "Write the graph for the viewers of circuit-tracer and Neuronpedia")
      ->type_name("FILE.json");
  command->add_option("--neurons", options->neurons, "Write N neurons of the largest influence")
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
