// heed sae: sparse autoencoders and transcoders: train one, say what it is, and what its features
// are.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/text.h"
#include "engine/loaded_model.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "microscope/features/dictionary_files.h"
#include "microscope/features/dictionary_run.h"
#include "microscope/features/feature_contexts.h"

namespace heed::cli {
namespace {

// --- heed sae train

struct SaeTrainOptions {
  std::string model = "starter";
  std::string data;
  std::string validation;
  std::string architecture = "topk";
  DictionaryRun run;
  std::int64_t steps = 1000;
  bool json = false;
};

OrderedJson evaluation_json(const DictionaryEvaluation& found) {
  return {{"tokens", found.tokens},
          {"loss", json_number(found.loss)},
          {"loss_with", json_number(found.loss_with)},
          {"loss_with_zeros", json_number(found.loss_with_zeros)},
          {"loss_recovered", json_number(found.recovered())},
          {"l0", json_number(found.active)},
          {"explained_variance", json_number(found.explained)},
          {"used_features", found.used}};
}

std::string evaluation_text(const DictionaryEvaluation& found, std::int64_t features) {
  return fmt::format(
      "  loss recovered      {:.1f} %: {:.4f} nats with it, {:.4f} without, {:.4f} with zeros\n"
      "  L0                  {:.1f} active features a token\n"
      "  explained variance  {:.3f}\n"
      "  used features       {} of {}, over {} tokens\n",
      100 * found.recovered(), found.loss_with, found.loss, found.loss_with_zeros, found.active,
      found.explained, grouped(found.used), grouped(features), grouped(found.tokens));
}

void train_sae(SaeTrainOptions options) {
  const LoadedModel model = load_model_as(options.model, "");
  const MappedFile data(options.data);
  const MappedFile validation =
      options.validation.empty() ? MappedFile() : MappedFile(options.validation);
  DictionaryRun& run = options.run;
  run.settings.activation = options.architecture == "topk"       ? FeatureActivation::top_k
                            : options.architecture == "standard" ? FeatureActivation::relu
                                                                 : FeatureActivation::jump_relu;
  run.settings.steps = options.steps;
  run.model = model.name;
  run.stream.seed = run.settings.seed;
  run.stop = interrupt_flag();
  ProgressLine line;
  run.progress = [&](std::int64_t step, const DictionaryStep& done) {
    line.update({.what = "training", .done = step, .total = run.settings.steps},
                fmt::format("loss {:.4g}  L0 {:.1f}  explained {:.3f}  {} dead", done.loss,
                            done.active, done.explained, grouped(done.dead)));
  };
  const DictionaryRunResult found =
      train_dictionary(model.transformer, model.require_tokenizer(),
                       {.training = data.text(), .validation = validation.text()}, run);
  line.clear();
  const auto steps = static_cast<std::int64_t>(found.steps);
  require(steps > 0, ErrorCode::interrupted, "interrupted before the first step");
  if (options.json) {
    OrderedJson document{{"model", model.name},
                         {"out", run.out.string()},
                         {"steps", steps},
                         {"tokens", found.tokens},
                         {"interrupted", found.interrupted},
                         {"loss", json_number(found.last.loss)},
                         {"dead_features", found.last.dead}};
    if (found.evaluation) document["evaluation"] = evaluation_json(*found.evaluation);
    print_json(document);
  } else {
    print(fmt::format("{} {}: {} of {} positions, {} tokens read; written to {}\n",
                      found.interrupted ? "Interrupted after training" : "Trained",
                      counted(run.settings.features, "feature"), counted(steps, "step"),
                      grouped(run.batch), grouped(found.tokens), printable(run.out.string())));
    if (found.evaluation) print(evaluation_text(*found.evaluation, run.settings.features));
  }
  require(!found.interrupted, ErrorCode::interrupted, "interrupted: {} saved in '{}'",
          counted(steps, "step"), run.out.string());
}

void add_sae_train_command(Command parent) {
  Command command =
      add_command(parent, "train", "Train a sparse autoencoder or transcoder on activations");
  auto options = std::make_shared<SaeTrainOptions>();
  DictionaryRun& run = options->run;
  run.settings.features = 4096;
  add_model_option(*command, options->model);
  command->add_option("--data", options->data, "Read activations over this text file")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--point", run.input_point, "Read this point, such as blocks.3.hook_resid_pre")
      ->required()
      ->type_name("POINT");
  command->add_option("--to", run.output_point, "Train a transcoder that writes this point")
      ->type_name("POINT");
  command->add_option("--head", run.head, "Read one head of the point [all, side by side]")
      ->type_name("H");
  command
      ->add_option_function<std::string>(
          "-o,--out", [options](const std::string& out) { options->run.out = out; },
          "Write SAELens's cfg.json and sae_weights.safetensors to this directory")
      ->required()
      ->type_name("DIR");
  command->add_option("--features", run.settings.features, "Learn N features")
      ->capture_default_str()
      ->check(between(1, 1 << 26))
      ->type_name("N");
  command
      ->add_option("--architecture", options->architecture, "Use topk, standard (ReLU) or jumprelu")
      ->check(one_of({"topk", "standard", "jumprelu"}))
      ->capture_default_str()
      ->type_name("KIND");
  command->add_option("-k", run.settings.k, "Activate N features of a position, with topk")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command->add_option("--l1", run.settings.l1, "Penalise activations by X, with standard")
      ->capture_default_str()
      ->type_name("X");
  command->add_option("--l0", run.settings.l0, "Penalise active features by X, with jumprelu")
      ->capture_default_str()
      ->type_name("X");
  command->add_option("--steps", options->steps, "Take N steps")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command->add_option("--batch", run.batch, "Use N positions in a step")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command->add_option("--buffer", run.stream.rows, "Draw them from N positions in memory")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command->add_option("--window", run.stream.window, "Run the model on N tokens at a time")
      ->capture_default_str()
      ->check(at_least(2))
      ->type_name("N");
  command->add_option("--rate", run.settings.learning_rate, "Learn at this rate")
      ->capture_default_str()
      ->type_name("X");
  command
      ->add_option("--dead-after", run.settings.dead_after,
                   "Call a feature dead after N positions without activity")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command
      ->add_option("--resample-every", run.settings.resample_every,
                   "Set dead features anew every N steps [never]")
      ->check(at_least(1))
      ->type_name("N");
  command
      ->add_option("--validation", options->validation,
                   "Measure on this text file [the last 5 % of --data]")
      ->type_name("FILE");
  command->add_option("--seed", run.settings.seed, "Draw random numbers from this seed")
      ->check(any_seed())
      ->capture_default_str()
      ->type_name("N");
  add_json_option(*command, options->json);
  command->callback([options] { train_sae(*options); });
}

// --- heed sae features

struct SaeFeaturesOptions {
  std::string directory;
  std::string model = "starter";
  std::string data;
  std::string point;
  FeatureContextSearch search;
  std::string features;
  bool json = false;
};

Dictionary one_dictionary(const std::string& directory, const std::string& point) {
  std::vector<Dictionary> all = load_dictionaries(directory, {.input_point = point});
  require(all.size() == 1, ErrorCode::unsupported,
          "'{}' holds {} transcoders, expected one dictionary", directory, all.size());
  return std::move(all.front());
}

std::string scored_words(const LoadedModel& model, const std::vector<ProjectedToken>& tokens) {
  std::string words;
  for (const ProjectedToken& each : tokens) {
    words += "  " + visible(model.token_bytes(each.token)) + fmt::format(" {:+.2f}", each.score);
  }
  return words;
}

void print_feature(const LoadedModel& model, const NeuronMemory& memory, const Ink& ink) {
  print("\n" + ink.title(fmt::format("Feature {}", memory.id.neuron)) +
        ink.quiet(fmt::format("  active at {} of the tokens, at most {:.2f}\n",
                              percent(memory.active_share), memory.largest)));
  for (const NeuronContext& context : memory.contexts) {
    std::string before, after;
    for (std::int64_t i = 0; i < std::ssize(context.tokens); ++i) {
      if (i == context.peak) continue;
      (i < context.peak ? before : after) += printable_lines(model.token_bytes(context.tokens[i]));
    }
    for (std::string* side : {&before, &after}) std::ranges::replace(*side, '\n', ' ');
    const std::string peak = visible(model.token_bytes(context.tokens[context.peak]));
    print(pad_left(fmt::format("{:.2f}", context.activation), 8) + "  " + ink.quiet(before) +
          ink.bold("[" + peak + "]") + ink.quiet(after) + "\n");
  }
  if (memory.says.most.empty()) return;
  print("  raises " + scored_words(model, memory.says.most) + "\n  lowers " +
        scored_words(model, memory.says.least) + "\n");
}

OrderedJson logits_json(const LoadedModel& model, const std::vector<ProjectedToken>& tokens) {
  OrderedJson all = OrderedJson::array();
  for (const ProjectedToken& each : tokens) {
    OrderedJson token = token_json(each.token, model.token_bytes(each.token));
    token["score"] = json_number(each.score);
    all.push_back(std::move(token));
  }
  return all;
}

OrderedJson feature_json(const LoadedModel& model, const NeuronMemory& memory) {
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
  return {{"feature", memory.id.neuron},
          {"density", json_number(memory.active_share)},
          {"mean", json_number(memory.mean_activation)},
          {"largest", json_number(memory.largest)},
          {"raises", logits_json(model, memory.says.most)},
          {"lowers", logits_json(model, memory.says.least)},
          {"contexts", std::move(contexts)}};
}

void show_features(SaeFeaturesOptions options) {
  const LoadedModel model = load_model_as(options.model, "");
  const Dictionary dictionary = one_dictionary(options.directory, options.point);
  const MappedFile data(options.data);
  options.search.features = parse_indices(options.features);
  options.search.windows.stop = interrupt_flag();
  ProgressLine line;
  options.search.windows.progress = line.callback();
  const FeatureStatistics found = find_feature_contexts(
      model.transformer, model.require_tokenizer(), data.text(), dictionary, options.search);
  line.clear();
  const std::int64_t features = dictionary.specification().features;
  const auto used = features - std::ranges::count(found.active, 0);
  if (options.json) {
    OrderedJson all = OrderedJson::array();
    for (const NeuronMemory& memory : found.memories) all.push_back(feature_json(model, memory));
    return print_json({{"model", model.name},
                       {"dictionary", options.directory},
                       {"point", dictionary.specification().input_point},
                       {"tokens", found.tokens},
                       {"d_sae", features},
                       {"used_features", used},
                       {"features", std::move(all)}});
  }
  const Ink ink(standard_output());
  print("\n" + ink.title(dictionary.specification().input_point) +
        ink.quiet(fmt::format("  {} of {} features are active in {} tokens\n", grouped(used),
                              grouped(features), grouped(found.tokens))));
  for (const NeuronMemory& memory : found.memories) print_feature(model, memory, ink);
}

void add_sae_features_command(Command parent) {
  Command command =
      add_command(parent, "features", "Show where features are active, and their logits");
  auto options = std::make_shared<SaeFeaturesOptions>();
  command->add_option("DIR", options->directory, "Read this directory of SAELens or params.npz")
      ->required()
      ->type_name("DIR");
  add_model_option(*command, options->model);
  command->add_option("--data", options->data, "Search this text file")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--features", options->features, "Show these, such as 3,17 or 0-9 [the densest]")
      ->type_name("LIST");
  command->add_option("--count", options->search.count, "Show the N densest")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command->add_option("--top", options->search.windows.top, "Show N contexts and logits of each")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command->add_option("--tokens", options->search.tokens, "Read at most N tokens")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command
      ->add_option("--window", options->search.windows.window,
                   "Run the model on N tokens at a time")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command->add_option("--point", options->point, "Read this point [as the files say]")
      ->type_name("POINT");
  add_json_option(*command, options->json);
  command->callback([options] { show_features(*options); });
}

// --- heed sae eval

struct SaeEvalOptions {
  std::string directory;
  std::string model = "starter";
  std::string data;
  std::string point;
  DictionaryMeasuring measuring;
  bool json = false;
};

void evaluate_sae(SaeEvalOptions options) {
  const LoadedModel model = load_model_as(options.model, "");
  const Dictionary dictionary = one_dictionary(options.directory, options.point);
  const MappedFile data(options.data);
  options.measuring.stop = interrupt_flag();
  const DictionaryEvaluation found = evaluate_dictionary(
      model.transformer, model.require_tokenizer(), data.text(), dictionary, options.measuring);
  if (options.json) {
    OrderedJson document{{"model", model.name}, {"point", dictionary.specification().input_point}};
    document.update(evaluation_json(found));
    return print_json(document);
  }
  print(dictionary.specification().input_point + "\n" +
        evaluation_text(found, dictionary.specification().features));
}

void add_sae_eval_command(Command parent) {
  Command command =
      add_command(parent, "eval", "Measure the loss that a dictionary recovers on a text");
  auto options = std::make_shared<SaeEvalOptions>();
  command->add_option("DIR", options->directory, "Read this directory of SAELens or params.npz")
      ->required()
      ->type_name("DIR");
  add_model_option(*command, options->model);
  command->add_option("--data", options->data, "Measure on this text file")
      ->required()
      ->type_name("FILE");
  command->add_option("--tokens", options->measuring.tokens, "Read at most N tokens")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command->add_option("--window", options->measuring.window, "Run the model on N tokens at a time")
      ->capture_default_str()
      ->check(at_least(2))
      ->type_name("N");
  command->add_option("--point", options->point, "Read this point [as the files say]")
      ->type_name("POINT");
  add_json_option(*command, options->json);
  command->callback([options] { evaluate_sae(*options); });
}

}  // namespace

void add_sae_command(Command app) {
  Command group = app.add_subcommand("sae", "Train and read sparse autoencoders and transcoders");
  group->require_subcommand(1);
  add_sae_train_command(*group);
  add_sae_features_command(*group);
  add_sae_eval_command(*group);
}

}  // namespace heed::cli
