// heed microworld: write the embedded corpus with its truth, and measure a model against it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/microworld_pairs.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/pair_options.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "engine/loaded_model.h"
#include "engine/measured_examples.h"
#include "microscope/traces/point_names.h"
#include "microworld/checks/evidence_check.h"
#include "microworld/checks/microworld_check.h"
#include "microworld/checks/story_probe.h"
#include "microworld/microworld.h"

namespace heed::cli {
namespace {

struct WriteOptions {
  std::int64_t stories = 10;
  std::int64_t first = 0;
  std::uint64_t seed = 1;
  std::vector<std::string> kinds;
  bool truth = false;
  bool pairs = false;
  std::int64_t valid = 0;
  std::string out;
  bool json = false;
};

std::vector<microworld::StoryKind> chosen_kinds(const WriteOptions& options) {
  const auto names = microworld::story_kind_names();
  std::vector<microworld::StoryKind> kinds;
  for (const std::string& kind : options.kinds) {
    const auto name = std::ranges::find(names, kind);
    if (name == names.end()) {
      fail_usage(fmt::format("there are no stories of kind '{}'; there are {}", kind,
                             fmt::join(names, ", ")));
    }
    kinds.push_back(static_cast<microworld::StoryKind>(name - names.begin()));
  }
  return kinds;
}

void write_stories(const WriteOptions& options) {
  if (options.json && !options.out.empty()) {
    fail_usage("--json prints to standard output; --out writes JSON lines with --truth");
  }
  const microworld::Microworld world(options.seed, chosen_kinds(options));
  ProgressLine line;
  microworld::CorpusOptions corpus{
      .begin = options.first, .end = options.first + options.stories, .stop = interrupt_flag()};
  if (options.truth || options.json) corpus.format = microworld::CorpusFormat::truth;
  if (!options.out.empty()) corpus.progress = line.callback();
  if (!options.out.empty()) {
    AtomicFile file(options.out);
    write_corpus(world, corpus, [&](std::string_view text) { file.write(text); });
    return file.commit();
  }
  if (!options.json) {
    write_corpus(world, corpus, [](std::string_view text) { print(text); });
    if (!options.truth && standard_output().interactive) print("\n");
    return;
  }

  // One document: the lines of truth, each an object, as an array.
  OrderedJson stories = OrderedJson::array();
  for (std::int64_t i = corpus.begin; i < corpus.end; ++i) {
    stories.push_back(OrderedJson::parse(to_json_line(world.story(i))));
  }
  print_json({{"seed", options.seed}, {"stories", std::move(stories)}});
}

void write_chosen_pairs(const WriteOptions& options) {
  if (!options.kinds.empty() || options.truth) {
    fail_usage("--kinds and --truth are of stories; pairs come with their alignment (--json)");
  }
  write_pairs({.pairs = options.stories,
               .first = options.first,
               .valid = options.valid,
               .seed = options.seed,
               .out = options.out,
               .json = options.json});
}

constexpr std::uint64_t max_checked_stories = 10'000'000;  // what fits into memory

struct CheckOptions {
  std::string model = "starter";
  MicroworldCheckOptions check{.stories = 1000, .seed = 2};
  bool causal = false;
  bool evidence = false;
  std::int64_t variants = 200;
  std::vector<std::string> subjects;
  bool probes = false;
  bool pairs = false;
  std::int64_t cut_pairs = 200;
  bool json = false;
};

OrderedJson check_json(const MicroworldCheck& check) {
  return {{"stories", check.stories},
          {"loss_nats_per_story", json_number(check.loss_nats_per_story)},
          {"entropy_nats_per_story", json_number(check.entropy_nats_per_story)},
          {"sense_accuracy", json_number(check.sense_accuracy)},
          {"static_sense_accuracy", json_number(check.static_sense_accuracy)},
          {"recalled_sense_accuracy", json_number(check.recalled_sense_accuracy)},
          {"sense_marks", check.sense_marks},
          {"culprit_accuracy", json_number(check.culprit_accuracy)},
          {"culprit_min_distance", check.culprit_min_distance},
          {"mysteries", check.mysteries},
          {"adjective_mass", json_number(check.adjective_mass)},
          {"adjective_head", check.adjective_head},
          {"adjective_nouns", check.adjective_nouns}};
}

void print_check(const MicroworldCheck& check) {
  const Ink ink(standard_output());
  Table table({{"measured", Align::left}, {"", Align::right}, {"", Align::left}});
  table.add(
      {"loss per story", ink.bold(fmt::format("{:.2f}", check.loss_nats_per_story)),
       ink.quiet(fmt::format("nats; at best {:.2f}, the entropy", check.entropy_nats_per_story))});
  table.add(
      {"senses distinguished", ink.bold(percent(check.sense_accuracy)),
       ink.quiet(fmt::format("of {} words; from embeddings alone {}", grouped(check.sense_marks),
                             percent(check.static_sense_accuracy)))});
  table.add({"senses recalled", ink.bold(percent(check.recalled_sense_accuracy)),
             ink.quiet(fmt::format("of {} words in a neutral context",
                                   grouped(check.recalled_sense_marks)))});
  table.add({"murderers named", ink.bold(percent(check.culprit_accuracy)),
             ink.quiet(fmt::format("of {} mysteries; the clue is ≥ {} tokens back",
                                   grouped(check.mysteries), check.culprit_min_distance))});
  table.add({"weight on adjectives", ink.bold(percent(check.adjective_mass)),
             ink.quiet(fmt::format("of a noun's attention, in head {}, {} nouns",
                                   check.adjective_head, grouped(check.adjective_nouns)))});
  print("\n" + ink.title("Microworld check") +
        ink.quiet(fmt::format("  {} stories\n\n", grouped(check.stories))) + table.text(ink));
}

OrderedJson effect_json(const CausalEffect& effect) {
  return {{"cases", effect.cases},
          {"probability", json_number(effect.probability)},
          {"probability_cut", json_number(effect.probability_cut)},
          {"probability_control", json_number(effect.probability_control)},
          {"accuracy", json_number(effect.accuracy)},
          {"accuracy_cut", json_number(effect.accuracy_cut)},
          {"accuracy_control", json_number(effect.accuracy_control)}};
}

OrderedJson causality_json(const MicroworldCausality& causality) {
  return {{"noun_to_adjectives", effect_json(causality.noun_to_adjectives)},
          {"last_word_to_clue", effect_json(causality.last_word_to_clue)},
          {"all_words_to_clue", effect_json(causality.all_words_to_clue)}};
}

void print_causality(const MicroworldCausality& causality) {
  const Ink ink(standard_output());
  Table table({{"edges cut", Align::left},
               {"cases", Align::right},
               {"true next token", Align::right},
               {"cut", Align::right},
               {"elsewhere", Align::right},
               {"likeliest", Align::right},
               {"cut", Align::right},
               {"elsewhere", Align::right}});
  const auto add = [&](const char* what, const CausalEffect& effect) {
    table.add({what, grouped(effect.cases), percent(effect.probability),
               ink.bold(percent(effect.probability_cut)), percent(effect.probability_control),
               percent(effect.accuracy), ink.bold(percent(effect.accuracy_cut)),
               percent(effect.accuracy_control)});
  };
  add("noun to its adjectives", causality.noun_to_adjectives);
  add("last word to the clue", causality.last_word_to_clue);
  add("all words to the clue", causality.all_words_to_clue);
  print("\n" + ink.title("Predictions with attention cut") + "\n\n" + table.text(ink));
}

OrderedJson evidence_json(const std::vector<EvidenceCheck>& checks) {
  OrderedJson list = OrderedJson::array();
  for (const EvidenceCheck& check : checks) {
    OrderedJson weights = OrderedJson::array();
    for (const EvidenceWeight& weight : check.weights) {
      weights.push_back({{"head", weight.head.text()},
                         {"share", json_number(weight.share)},
                         {"even_share", json_number(weight.even_share)},
                         {"prominent", json_number(weight.prominent)}});
    }
    OrderedJson heads = OrderedJson::array();
    for (const HeadName& head : check.heads) heads.push_back(head.text());
    list.push_back({{"subject", check.subject},
                    {"variants", check.variants},
                    {"weights", std::move(weights)},
                    {"heads", std::move(heads)},
                    {"probability", json_number(check.probability)},
                    {"without_heads", json_number(check.without_heads)},
                    {"without_others", json_number(check.without_others)},
                    {"without_edges", json_number(check.without_edges)},
                    {"replaced", json_number(check.replaced)},
                    {"other_answer", json_number(check.other_answer)},
                    {"other_answer_replaced", json_number(check.other_answer_replaced)},
                    {"controls", check.controls},
                    {"control_replaced", json_number(check.control_replaced)},
                    {"isolated", json_number(check.isolated)},
                    {"others_isolated", json_number(check.others_isolated)},
                    {"right_by_depth", check.right_by_depth}});
  }
  return list;
}

void print_evidence(const std::vector<EvidenceCheck>& checks) {
  const Ink ink(standard_output());
  Table weights({{"decides", Align::left},
                 {"word", Align::right},
                 {"head", Align::left},
                 {"share", Align::right},
                 {"even", Align::right},
                 {"prominent", Align::right}});
  Table effects({{"decides", Align::left},
                 {"heads off", Align::left},
                 {"answer", Align::right},
                 {"without", Align::right},
                 {"without others", Align::right},
                 {"edges cut", Align::right},
                 {"replaced", Align::right},
                 {"other answer", Align::right},
                 {"control", Align::right},
                 {"isolated", Align::right},
                 {"others isolated", Align::right},
                 {"first block", Align::right},
                 {"last block", Align::right}});
  for (const EvidenceCheck& check : checks) {
    for (std::size_t i = 0; i < check.weights.size(); ++i) {
      const EvidenceWeight& weight = check.weights[i];
      weights.add({i == 0 ? check.subject : "", fmt::format("{}", i + 1), weight.head.text(),
                   ink.bold(percent(weight.share)), percent(weight.even_share),
                   percent(weight.prominent)});
    }
    std::string heads;
    for (const HeadName& head : check.heads) {
      heads += (heads.empty() ? "" : " ") + head.text();
    }
    effects.add({check.subject, heads, percent(check.probability),
                 ink.bold(percent(check.without_heads)), percent(check.without_others),
                 percent(check.without_edges), ink.bold(percent(check.replaced)),
                 percent(check.other_answer_replaced),
                 check.controls > 0 ? percent(check.control_replaced) : "", percent(check.isolated),
                 percent(check.others_isolated), percent(check.right_by_depth[1]),
                 percent(check.right_by_depth.back())});
  }
  print("\n" + ink.title("Attention from the word to what decides its answer") + "\n\n" +
        weights.text(ink));
  print("\n" + ink.title("Probability of the answer") +
        ink.quiet(fmt::format("  {} variants; the logit lens at two depths\n\n",
                              checks.empty() ? 0 : checks.front().variants)) +
        effects.text(ink));
}

OrderedJson probes_json(const std::vector<StoryProbe>& probes) {
  OrderedJson list = OrderedJson::array();
  for (const StoryProbe& probe : probes) {
    list.push_back({{"property", story_property_name(probe.property)},
                    {"classes", probe.classes},
                    {"training", probe.training},
                    {"held_out", probe.held_out},
                    {"most_frequent", json_number(probe.most_frequent)},
                    {"words", json_number(probe.words.accuracy)},
                    {"depths", depths_json(probe)}});
  }
  return list;
}

void print_probes(const std::vector<StoryProbe>& probes) {
  const Ink ink(standard_output());
  for (const StoryProbe& probe : probes) {
    Table table({{"depth", Align::left},
                 {"right", Align::right},
                 {"labels shuffled", Align::right},
                 {"", Align::left}});
    for (const StoryProbe::Depth& depth : probe.depths) {
      const bool is_beyond = probe.beats_words(depth);
      const std::string right = percent(depth.found.accuracy);
      table.add({point_name(depth.point), is_beyond ? ink.bold(right) : right,
                 percent(depth.found.shuffled), is_beyond ? "more than the bag of words" : ""});
    }
    print(
        "\n" +
        ink.title(fmt::format("Read by a linear probe: {}", story_property_name(probe.property))) +
        ink.quiet(fmt::format("  {} stories held out, {} in training, {} classes\n\n",
                              probe.held_out, probe.training, probe.classes.size())) +
        table.text(ink) +
        ink.quiet(fmt::format("\n  A bag of words reads {} right, the most frequent class is {}.\n",
                              percent(probe.words.accuracy), percent(probe.most_frequent))));
  }
}

void check_probes(const CheckOptions& options, const LoadedModel& model) {
  ProgressLine line;
  std::vector<StoryProbe> probes;
  for (const StoryProperty property :
       {StoryProperty::culprit, StoryProperty::culprit_place, StoryProperty::spoken}) {
    probes.push_back(probe_stories(
        model.transformer, [&](std::string_view text) { return model.encode(text); }, property,
        {.seed = options.check.seed, .progress = line.callback(), .stop = interrupt_flag()}));
  }
  line.clear();
  if (options.json) return print_json({{"probes", probes_json(probes)}});
  print_probes(probes);
}

void check_on_pairs(const CheckOptions& options) {
  if (options.causal || options.evidence || options.probes || !options.subjects.empty()) {
    fail_usage(
        "--causal, --evidence, --subjects and --probes are of stories; --pairs cuts edges as well");
  }
  check_translator({.model = options.model,
                    .pairs = options.check.stories,
                    .cut_pairs = options.cut_pairs,
                    .seed = options.check.seed,
                    .json = options.json});
}

void check_model(const CheckOptions& options) {
  if (options.pairs) return check_on_pairs(options);
  const LoadedModel model = load_model(options.model);
  if (options.probes) return check_probes(options, model);
  ProgressLine line;
  if (options.evidence || !options.subjects.empty()) {
    const std::vector<EvidenceCheck> checks =
        check_evidence(model.transformer, model.require_tokenizer(),
                       {.variants = options.variants,
                        .subjects = options.subjects,
                        .seed = options.check.seed,
                        .progress = line.callback(),
                        .stop = interrupt_flag()});
    line.clear();
    if (options.json) {
      return print_json({{"evidence", evidence_json(checks)}});
    }
    return print_evidence(checks);
  }
  MicroworldCheckOptions check = options.check;
  check.progress = line.callback();
  check.stop = interrupt_flag();
  const MicroworldCheck result =
      check_microworld(model.transformer, model.require_tokenizer(), check);
  std::optional<MicroworldCausality> causality;
  if (options.causal) {
    causality = check_microworld_causality(model.transformer, model.require_tokenizer(), check);
  }
  line.clear();
  if (options.json) {
    OrderedJson document = check_json(result);
    if (causality) document["causal"] = causality_json(*causality);
    return print_json(document);
  }
  print_check(result);
  if (causality) print_causality(*causality);
}

void add_check_command(Command parent) {
  Command command =
      add_command(parent, "check", "Measure a model against the truth of stories or pairs");
  auto options = std::make_shared<CheckOptions>();
  add_model_option(*command, options->model);
  command->add_option("-n,--stories", options->check.stories, "Read N stories, or pairs")
      ->capture_default_str()
      ->check(between(1, max_checked_stories));
  command
      ->add_option("-s,--seed", options->check.seed,
                   "Seed the stories; differ from the training seed")
      ->check(any_seed())
      ->capture_default_str();
  command->add_flag("--causal", options->causal,
                    "Measure predictions with the relevant attention cut");
  command->add_flag("--evidence", options->evidence,
                    "Measure instead which heads carry the evidence that decides a word");
  add_list_option(*command, "--subjects", options->subjects,
                  "Measure only these subjects, such as mole/animal; implies --evidence");
  command->add_option("--variants", options->variants, "Measure evidence on N variants of each")
      ->capture_default_str()
      ->check(between(1, 10'000));
  command->add_flag("--probes", options->probes,
                    "Measure instead what a linear probe reads from one vector, by depth");
  command->add_flag("--pairs", options->pairs,
                    "Measure a translator on sentences in two languages");
  command->add_option("--cuts", options->cut_pairs, "Cut edges on the first N pairs")
      ->capture_default_str()
      ->check(at_least(0));
  add_json_option(*command, options->json);
  command->callback([options, command] {
    if (options->pairs) choose_translator(*command, options->model);
    check_model(*options);
  });
}

struct ExampleOptions {
  std::string model = "starter";
  std::string claims;
  std::string out;
};

void measure_claims(const ExampleOptions& options) {
  const Json claims = parse_json(read_text_file(options.claims), options.claims);
  const LoadedModel model = load_model(options.model, {}, StacksWanted::any);
  const OrderedJson examples = measure_examples(model, claims, interrupt_flag());
  if (options.out.empty()) return print_json(examples);
  AtomicFile file(options.out);
  file.write(examples.dump(1));
  file.write("\n");
  file.commit();
}

void add_examples_command(Command parent) {
  Command command = add_command(parent, "examples",
                                "Measure claims about sentences; fail where one is not carried");
  auto options = std::make_shared<ExampleOptions>();
  add_model_option(*command, options->model);
  command->add_option("--claims", options->claims, "Sentences and claims, as JSON")
      ->type_name("FILE")
      ->required();
  command->add_option("-o,--out", options->out, "Write the measured examples to a file")
      ->type_name("FILE");
  command->callback([options] { measure_claims(*options); });
}

}  // namespace

void add_microworld_command(Command app) {
  Command command = add_command(app, "microworld", "Write the embedded corpus and its annotations");
  auto options = std::make_shared<WriteOptions>();
  command->add_option("-n,--stories", options->stories, "Write N stories, or pairs")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("--first", options->first, "Start at story or pair N")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("-s,--seed", options->seed, "Seed the stories")
      ->check(any_seed())
      ->capture_default_str();
  add_list_option(*command, "--kinds", options->kinds,
                  "Write only stories of these kinds, such as creature,mystery [all]");
  command->add_flag("--truth", options->truth, "Write one JSON line per story, with annotations");
  command->add_flag("--pairs", options->pairs,
                    "Write English sentences with their German translations");
  command->add_option("--valid", options->valid, "Write N more pairs for validation")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("-o,--out", options->out, "Write to a file, or pairs to files in a directory")
      ->type_name("PATH");
  add_json_option(*command, options->json);
  add_check_command(*command);
  add_examples_command(*command);
  command->require_subcommand(0, 1);
  command->callback([command, options] {
    if (command->has_parsed_subcommand()) return;
    if (options->pairs) return write_chosen_pairs(*options);
    if (options->valid > 0) fail_usage("--valid is of --pairs");
    write_stories(*options);
  });
}

}  // namespace heed::cli
