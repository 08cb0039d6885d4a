// heed lens: the logit lens, the parts of a logit or of the residual stream, and nearest words.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/intervention_options.h"
#include "cli/lens.h"
#include "cli/output.h"
#include "cli/pair_options.h"
#include "cli/terminal/text.h"
#include "engine/loaded_model.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "microscope/traces/recorded_pass.h"

namespace heed::cli {
namespace {

constexpr std::size_t near_words = 6;  // of --nearest, unless --top says otherwise

struct LensCommandOptions {
  std::string model = "starter";
  std::string dtype;
  TextOptions text;
  std::string token;
  std::string attribute;
  std::string against;
  std::string by = "component";
  std::int64_t position = -1;
  std::int64_t steps = 16;
  std::string baseline = "zero";  // of --by input: zero, mean, or a text
  std::size_t top = 24;           // rows of an attribution or of the stream; nearest words
  std::int64_t per_cell = 5;      // tokens of the lens
  bool without_norm = false;
  bool residual = false;
  bool nearest = false;
  InterventionOptions interventions;
  PairOptions pair;
  std::string out;
  bool json = false;
};

void check_options(const LensCommandOptions& options) {
  check_out(options.out);
  if (options.attribute.empty() && !options.against.empty()) {
    fail_usage("--against needs --attribute");
  }
  const int views = (options.attribute.empty() ? 0 : 1) + (options.token.empty() ? 0 : 1) +
                    (options.residual ? 1 : 0) + (options.nearest ? 1 : 0);
  if (views > 1) {
    fail_usage("give only one of --token, --attribute, --residual and --nearest");
  }
  if (options.nearest && !options.out.empty()) {
    fail_usage("--nearest prints a table, or a document with --json; it writes no --out");
  }
  if (options.residual && options.by != "component" && options.by != "head") {
    fail_usage("--residual goes with --by component or head, not " + options.by);
  }
  if (options.by == "input" && options.interventions.any()) {
    fail_usage("--by input takes no interventions; --by component, head, neuron and source do");
  }
}

// Refuses options that the chosen view would ignore.
void check_view(const Command& command, const LensCommandOptions& options) {
  const auto given = [&](const char* option) { return command.count(option) > 0; };
  const bool takes_apart = options.residual || !options.attribute.empty();
  for (const char* option : {"--by", "--position", "--top"}) {
    const bool is_known = takes_apart || (options.nearest && option != std::string("--by"));
    if (given(option) && !is_known) {
      fail_usage(fmt::format("{} needs --attribute or --residual{}", option,
                             option == std::string("--top")
                                 ? "; --per-cell sets the tokens in each cell of the lens"
                                 : ""));
    }
  }
  if (given("--per-cell") && (takes_apart || options.nearest)) {
    fail_usage("--per-cell is for the lens, not for --attribute, --residual and --nearest");
  }
  for (const char* option : {"--steps", "--baseline"}) {
    if (given(option) && options.by != "input") {
      fail_usage(fmt::format("{} needs --by input", option));
    }
  }
  if (options.without_norm && (takes_apart || options.nearest)) {
    fail_usage("--no-norm is for the lens, not for --attribute, --residual and --nearest");
  }
}

AttributionUnit unit_of(const std::string& name) {
  if (name == "head") return AttributionUnit::head;
  if (name == "neuron") return AttributionUnit::neuron;
  if (name == "source") return AttributionUnit::source;
  return AttributionUnit::component;
}

// A text, or the target of a translator, and the pass over it where interventions or a source
// change what it computes.
struct Reading {
  ExplainedText text;
  bool is_translation = false;  // the target is the model's own
  std::unique_ptr<RecordedPass> pass{};
};

OrderedJson document_of(const Reading& reading) {
  const LoadedModel& model = reading.text.model;
  OrderedJson document{{"model", model.name}};
  if (model.is_translator()) {
    document["source"] = text_json(model, reading.pass->texts().source, PairSide::source);
    document["target"] = text_json(model, reading.text.tokens, PairSide::target);
    document["target"]["is_translation"] = reading.is_translation;
  } else {
    document["tokens"] = tokens_json(model, reading.text.tokens);
  }
  if (!reading.text.changes.empty()) document["interventions"] = reading.text.changes;
  return document;
}

void show_lens(const LensCommandOptions& options, const Reading& reading) {
  const ExplainedText& text = reading.text;
  LensRequest request;
  request.options.top = options.per_cell;
  if (options.without_norm) request.options.norm = LensNorm::none;
  if (!options.token.empty()) {
    request.token = single_token(text.model, options.token, "--token");
    request.options.followed = {*request.token};
  }
  const LogitLens lens =
      reading.pass != nullptr
          ? look_through_layers(*reading.pass, request.options)
          : look_through_layers(text.model.transformer, text.tokens, request.options);
  write_lens(options.out, text, request, lens);
  if (!options.json) return print_lens(text, request, lens);
  OrderedJson document = document_of(reading);
  if (request.token) document["followed"] = token_json(text.model, *request.token);
  document["layers"] = lens_json(text, lens);
  print_json(document);
}

// A token, as --token takes one, or a text.
std::vector<std::int32_t> baseline_tokens(const LoadedModel& model, const std::string& text) {
  if (text.starts_with('#')) return {single_token(model, text, "--baseline")};
  std::vector<std::int32_t> part = model.encode_part(text);
  return part.size() == 1 ? part : model.encode(text);
}

InputAttribution attribute_by_input(const LensCommandOptions& options, const ExplainedText& text,
                                    const LogitQuestion& question) {
  InputAttribution attribution{.question = question, .baseline = "embeddings of zero"};
  IntegrationOptions integration{.steps = options.steps};
  if (options.baseline == "mean") {
    integration.baseline.kind = AttributionBaseline::Kind::mean;
    attribution.baseline = "the mean embedding";
  } else if (options.baseline != "zero") {
    integration.baseline = {AttributionBaseline::Kind::tokens,
                            baseline_tokens(text.model, options.baseline)};
    attribution.baseline = "“" + visible(options.baseline) + "”";
  }
  attribution.found = integrate_gradients(text.model.transformer, text.tokens,
                                          {question, options.position}, integration);
  return attribution;
}

void show_attribution(const LensCommandOptions& options, const Reading& reading) {
  const ExplainedText& text = reading.text;
  LogitQuestion question{.token = single_token(text.model, options.attribute, "--attribute")};
  if (!options.against.empty()) {
    question.against = single_token(text.model, options.against, "--against");
  }
  OrderedJson document = document_of(reading);
  if (options.by == "input") {
    const InputAttribution by_input = attribute_by_input(options, text, question);
    write_integrated(options.out, text, by_input);
    if (!options.json) return print_integrated(text, by_input);
    document["attribution"] = integrated_json(text, by_input);
    return print_json(document);
  }
  const AttributionUnit unit = unit_of(options.by);
  const Attribution attribution =
      reading.pass != nullptr
          ? attribute_logit(*reading.pass, question, unit, options.position)
          : attribute_logit(text.model.transformer, text.tokens, question, unit, options.position);
  write_attribution(options.out, text, attribution);
  if (!options.json) {
    return print_attribution(text, attribution, options.top);
  }
  document["attribution"] = attribution_json(text, attribution);
  print_json(document);
}

void show_residual(const LensCommandOptions& options, const Reading& reading) {
  const ExplainedText& text = reading.text;
  const ResidualUnit unit = options.by == "head" ? ResidualUnit::head : ResidualUnit::component;
  const ResidualParts residual =
      reading.pass != nullptr
          ? decompose_residual(*reading.pass, unit, options.position)
          : decompose_residual(text.model.transformer, text.tokens, unit, options.position);
  write_residual(options.out, text, residual, options.top);
  if (!options.json) return print_residual(text, residual, options.top);
  OrderedJson document = document_of(reading);
  document["residual"] = residual_json(residual);
  print_json(document);
}

void show_nearest(const LensCommandOptions& options, const Reading& reading) {
  const ExplainedText& text = reading.text;
  std::unique_ptr<RecordedPass> own;
  if (reading.pass == nullptr) {
    own = std::make_unique<RecordedPass>(text.model.transformer,
                                         Texts{.source = {}, .target = text.tokens});
  }
  const NearestWordsByDepth found =
      nearest_words(own != nullptr ? *own : *reading.pass, options.position,
                    static_cast<std::int64_t>(options.top), interrupt_flag());
  if (!options.json) return print_nearest(text, found);
  OrderedJson document = document_of(reading);
  document["nearest"] = nearest_words_json(text.model, found);
  print_json(document);
}

void lens(const LensCommandOptions& options) {
  check_options(options);
  if (!options.dtype.empty() && is_translator(options.model)) {
    fail_usage("--dtype is for models of one stack");
  }
  const LoadedModel model = load_model_as(options.model, options.dtype, StacksWanted::any);
  if (model.is_translator() &&
      (options.residual || options.nearest || !options.attribute.empty())) {
    fail_usage("--attribute, --residual and --nearest are of one stack: a translator has the lens");
  }
  ModelTexts texts = read_texts(options.text, options.pair, model);
  Reading reading{.text = {.model = model,
                           .tokens = texts.tokens.target,
                           .changes = options.interventions.summary()},
                  .is_translation = texts.is_translation};
  auto editor = make_interventions(options.interventions, model, texts.tokens);
  if (editor != nullptr || model.is_translator()) {
    reading.pass = std::make_unique<RecordedPass>(model.transformer, std::move(texts.tokens),
                                                  std::move(editor));
  }
  if (options.residual) return show_residual(options, reading);
  if (options.nearest) return show_nearest(options, reading);
  if (options.attribute.empty()) return show_lens(options, reading);
  show_attribution(options, reading);
}

}  // namespace

std::string ExplainedText::name(std::int32_t token) const {
  return "“" + visible(model.token_bytes(token)) + "”";
}

std::string ExplainedText::changes_line(const Ink& ink) const {
  return changes.empty() ? "" : ink.quiet("  changed: " + printable(changes) + "\n");
}

void add_lens_command(Command app) {
  Command command =
      add_command(app, "lens", "Show each block's prediction, or the parts of a logit");
  auto options = std::make_shared<LensCommandOptions>();
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  add_text_options(*command, options->text);
  add_target_options(*command, options->pair);
  command
      ->add_option("--token", options->token,
                   "Follow a token's probability and rank through the blocks")
      ->type_name("TOKEN");
  command->add_flag("--no-norm", options->without_norm, "Skip the final norm in the lens");
  command->add_option("--attribute", options->attribute, "Show what adds to this token's logit")
      ->type_name("TOKEN");
  command->add_option("--against", options->against, "Subtract this token's logit from --attribute")
      ->type_name("TOKEN");
  command->add_flag("--residual", options->residual,
                    "Show what was written to the final residual stream");
  command->add_flag("--nearest", options->nearest,
                    "Show the words that a position's vector is nearest to, block by block");
  command
      ->add_option("--by", options->by,
                   "Split by component, head, neuron, source position or input")
      ->check(one_of({"component", "head", "neuron", "source", "input"}))
      ->capture_default_str()
      ->type_name("PART");
  command->add_option("--position", options->position, "Look at this position, from 0; -1 is last")
      ->capture_default_str()
      ->type_name("T");
  command->add_option("--steps", options->steps, "Take N steps of --by input in each power of ten")
      ->check(between(1, 1000))
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--baseline", options->baseline,
                   "Compare --by input with zero, mean, a token or a text")
      ->capture_default_str()
      ->type_name("TEXT");
  command
      ->add_option("--top", options->top,
                   "Show the N largest terms of --attribute or --residual, or nearest words [6]")
      ->check(at_least(1))
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--per-cell", options->per_cell,
                   "Include N tokens in each cell of --json and --out")
      ->check(at_least(1))
      ->capture_default_str()
      ->type_name("N");
  add_out_option(*command, options->out);
  add_json_option(*command, options->json);
  add_intervention_options(*command, options->interventions);
  command->callback([command, options] {
    check_view(*command, *options);
    if (options->nearest && command->count("--top") == 0) options->top = near_words;
    if (options->pair.any()) choose_translator(*command, options->model);
    lens(*options);
  });
}

}  // namespace heed::cli
