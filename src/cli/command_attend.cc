// heed attend: attention patterns, from all heads down to one word's numbers.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/json.h"
#include "cli/arguments.h"
#include "cli/attend.h"
#include "cli/command.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/pair_command.h"
#include "engine/load_pair_model.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "microscope/intervene/head_effects.h"

namespace heed::cli {
namespace {

struct AttendOptions {
  std::string model = "starter";
  TextOptions text;
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> head;
  std::string word;
  std::int64_t occurrence = 0;
  std::size_t top = 0;
  bool words = false;
  bool json = false;
  std::string kind;  // of a translator
  PairOptions pair;
  InterventionOptions interventions;
};

void check_choice(const AttendOptions& options, const StackSpecification& config) {
  if (options.layer.has_value() != options.head.has_value()) {
    fail_usage("--layer and --head choose a head together: give both");
  }
  const auto check_range = [](const char* what, std::optional<std::int64_t> value,
                              std::int64_t count) {
    if (value && (*value < 0 || *value >= count)) {
      fail_usage(fmt::format("{} {} does not exist: the model has {}s 0 to {}", what, *value, what,
                             count - 1));
    }
  };
  check_range("layer", options.layer, config.layers);
  check_range("head", options.head, config.heads());
  if (options.words && (!options.layer || !options.word.empty())) {
    fail_usage("--words draws the map of a head: give --layer and --head, and no --word");
  }
  if (options.occurrence != 0 && options.word.empty()) {
    fail_usage("--occurrence needs --word");
  }
  if (options.top > 0 && (options.layer || !options.word.empty())) {
    fail_usage("--top lists heads, --word and --head show one: give only one");
  }
}

// The chosen head, or the one that does most for the token after this word.
HeadChoice head_for_word(const AttendOptions& options, const AttendedText& text,
                         const TextWord& word) {
  if (options.layer) return {*options.layer, *options.head};
  if (!text.is_causal()) {
    fail_usage(fmt::format(
        "'{}' is an encoder: it predicts no next token by which --word could choose a head; give "
        "--layer and --head",
        text.model.name));
  }
  const HeadEffect shown =
      head_to_show(text.model.gpt, text.tokens, word.last(), word.begin).effect;
  return {shown.layer, shown.head};
}

WordWalk walk(const AttendedText& text, const TextWord& word, const HeadChoice& choice) {
  const Transformer& gpt = text.model.gpt;
  const Capture capture =
      trace(gpt, text.tokens, word_walk_points(gpt.specification(), choice.layer));
  return walk_word(gpt, capture, choice.layer, choice.head, word.last());
}

// The layers whose patterns are compared or printed; a chosen word's walk and the overview trace
// their own.
std::vector<std::int64_t> layers_to_keep(const AttendOptions& options,
                                         const StackSpecification& config) {
  if (!options.word.empty()) return {};
  if (options.layer) return {*options.layer};
  const bool overview = options.top == 0 && !options.json;
  return overview ? std::vector<std::int64_t>{} : all_layers(config);
}

void print_attention_json(const AttendOptions& options, const AttendedText& text) {
  OrderedJson document{{"model", text.model.name},
                       {"tokens", tokens_json(text.model, text.tokens)}};
  if (options.interventions.any()) document["changed"] = options.interventions.summary();
  if (!options.word.empty()) {
    const std::vector<TextWord> words = text_words(text.model, text.tokens);
    const TextWord& word = find_word(words, options.word, options.occurrence);
    document["walk"] =
        word_walk_json(text.bytes, &word, walk(text, word, head_for_word(options, text, word)));
    return print_json(document);
  }
  if (options.layer) {
    document["layer"] = *options.layer;
    document["head"] = *options.head;
    const View<const float> pattern = text.pattern(*options.layer, *options.head);
    if (options.words) {
      const std::vector<TextWord> units = text_units(text.model, text.tokens);
      document["words"] = units_json(units);
      document["pattern"] = pattern_json(by_unit(units, pattern).view());
    } else {
      document["pattern"] = pattern_json(pattern);
    }
    return print_json(document);
  }
  if (!text.is_causal()) {
    document["heads"] = encoder_heads_json(text, options.top);
    return print_json(document);
  }
  document["heads"] = OrderedJson::array();
  const auto ranked =
      rank_heads(text.patterns, text.model.gpt.specification().block.attention, text.tokens);
  const std::size_t count = options.top == 0 ? ranked.size() : std::min(options.top, ranked.size());
  for (const RankedHead& head : std::span(ranked).first(count)) {
    OrderedJson row = head_statistics_json(head.layer, head.head, head.statistics);
    if (options.top == 0) row["pattern"] = pattern_json(text.pattern(head.layer, head.head));
    document["heads"].push_back(std::move(row));
  }
  print_json(document);
}

void attend(const AttendOptions& options) {
  if (is_pair_model(options.model)) {
    return attend_pair(load_pair_model(options.model), options.text,
                       {.pair = options.pair,
                        .interventions = options.interventions,
                        .kind = options.kind,
                        .layer = options.layer,
                        .head = options.head,
                        .word = options.word,
                        .occurrence = options.occurrence,
                        .top = options.top,
                        .words = options.words,
                        .json = options.json});
  }
  require_no_pair_options(options.pair, options.model);
  if (!options.kind.empty()) fail_usage("--kind needs a translator: other models have one kind");
  LoadedModel model = load_model(options.model);
  check_choice(options, model.gpt.specification());
  const std::vector<std::int32_t> tokens = read_tokens(options.text, model);
  if (auto editor = make_interventions(options.interventions, model, tokens)) {
    model = model.with_editor(std::move(editor));
  }
  const AttendedText text(model, tokens, layers_to_keep(options, model.gpt.specification()));
  if (options.json) return print_attention_json(options, text);
  const Screen screen;
  if (!options.word.empty()) {
    const std::vector<TextWord> words = text_words(text.model, text.tokens);
    const TextWord& word = find_word(words, options.word, options.occurrence);
    return print_word_walk(text, word, walk(text, word, head_for_word(options, text, word)),
                           screen);
  }
  if (options.layer) {
    return print_head_map(text, {*options.layer, *options.head},
                          options.words ? MapUnit::words : MapUnit::tokens, screen);
  }
  if (options.top > 0 && !text.is_causal()) return print_encoder_heads(text, options.top, screen);
  if (options.top > 0) {
    print("\n" + screen.ink.title("Most selective heads") +
          screen.ink.quiet("  weight: mean largest weight on a token further back\n\n"));
    return print_selective_heads(
        text,
        rank_heads(text.patterns, text.model.gpt.specification().block.attention, text.tokens),
        options.top, screen);
  }
  print_head_overview(text, screen);
}

}  // namespace

void add_attend_command(Command app) {
  Command command = add_command(app, "attend", "Show attention: all heads, one head, one word");
  auto options = std::make_shared<AttendOptions>();
  add_model_option(*command, options->model);
  add_text_options(*command, options->text);
  command->add_option("--layer", options->layer, "Choose the layer of --head, from 0")
      ->type_name("L");
  command->add_option("--head", options->head, "Show one head of --layer as a map, from 0")
      ->type_name("H");
  command->add_flag("--words", options->words,
                    "Sum the weights of each word's tokens in the map of --head");
  command->add_option("--word", options->word, "Show every number of one word's attention")
      ->type_name("WORD");
  command
      ->add_option("--occurrence", options->occurrence, "Which occurrence of --word, from 1 [last]")
      ->check(at_least(1))
      ->type_name("K");
  command->add_option("--top", options->top, "List the K most selective heads")
      ->check(at_least(1))
      ->type_name("K");
  add_target_options(*command, options->pair);
  command->add_option("--kind", options->kind, "Translator: show encoder, decoder or cross [all]")
      ->type_name("KIND");
  add_intervention_options(*command, options->interventions);
  add_json_option(*command, options->json);
  command->callback([options, command] {
    const bool is_pair =
        options->pair.any() || !options->kind.empty() || options->interventions.name_two_texts();
    choose_pair_model(*command, is_pair, options->model);
    attend(*options);
  });
}

}  // namespace heed::cli
