// heed attend: attention patterns, from all heads down to one word's numbers, of a text or of a
// source and a target.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/attend.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/pair_options.h"
#include "cli/unread.h"
#include "engine/head_to_show.h"
#include "engine/loaded_model.h"
#include "engine/views/reading_json.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "microscope/attention/head_scan.h"
#include "microscope/intervene/pair_effects.h"

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

std::vector<AttentionSite> chosen_sites(const AttendOptions& options,
                                        const Architecture& architecture) {
  const std::span<const AttentionSite> sites = sites_of(architecture);
  if (options.kind.empty()) return {sites.begin(), sites.end()};
  const auto site = site_named(options.kind, architecture);
  if (!site) {
    fail_usage(fmt::format("--kind {} is none of encoder, decoder and cross", options.kind));
  }
  return {*site};
}

AttentionSite site_of_head(const AttendOptions& options, const Architecture& architecture) {
  if (!architecture.is_encoder_decoder()) return only_site;
  return options.kind.empty() ? cross_site : chosen_sites(options, architecture).front();
}

void check_choice(const AttendOptions& options, const Architecture& architecture) {
  const bool is_pair = architecture.is_encoder_decoder();
  // A word of a pair may be shown by the mean of a layer's heads.
  const bool may_lack_head = is_pair && !options.word.empty();
  if (options.head && !options.layer) fail_usage("--head needs --layer: give both");
  if (options.layer && !options.head && !may_lack_head) {
    fail_usage("--layer and --head choose a head together: give both");
  }
  if (options.words && (!options.head || !options.word.empty())) {
    fail_usage("--words draws the map of a head: give --layer and --head, and no --word");
  }
  if (options.occurrence != 0 && options.word.empty()) fail_usage("--occurrence needs --word");
  if (options.top > 0 && (options.layer || !options.word.empty())) {
    fail_usage("--top lists heads, --word and --head show one: give only one");
  }
  const auto check_range = [](const char* what, std::optional<std::int64_t> value,
                              std::int64_t count, std::string_view of) {
    if (value && (*value < 0 || *value >= count)) {
      fail_usage(fmt::format("{} {} does not exist: {} has {}s 0 to {}", what, *value, of, what,
                             count - 1));
    }
  };
  for (const AttentionSite site : chosen_sites(options, architecture)) {
    if (options.word.empty() && site != site_of_head(options, architecture)) continue;
    const std::string_view name = is_pair ? site_name(site) : "the model";
    check_range("layer", options.layer, architecture.of(site.stack).layers, name);
    check_range("head", options.head, attention_of(architecture, site).query_heads, name);
  }
}

// The chosen head, or the one that is shown for this word; its example or edge says why.
HeadToShow head_for_word(const AttendOptions& options, const AttendedTexts& text,
                         const TextWord& word) {
  if (options.layer)
    return {.head = {*options.layer, *options.head}, .example = {}, .caption = {}, .edge = {}};
  if (!text.is_causal()) {
    fail_usage(fmt::format(
        "'{}' is an encoder: it predicts no next token by which --word could choose a head; give "
        "--layer and --head",
        text.model.name));
  }
  return head_to_show(text.model, text.tokens(),
                      {.word = {word.begin, word.end}, .keys = shown_keys(text)}, interrupt_flag());
}

// One word of one text: the chosen head, and its numbers.
struct WalkedWord {
  TextWord word;
  HeadToShow shown;
  WordWalk walk;
};

WalkedWord walked_word(const AttendOptions& options, const AttendedTexts& text) {
  const std::vector<TextWord> words = text_words(text.model, text.tokens());
  const TextWord& word = find_word(words, options.word, options.occurrence);
  HeadToShow shown = head_for_word(options, text, word);
  WordWalk walk =
      walk_word(text.pass, text.attention, shown.head.layer, shown.head.head, word.last());
  return {word, std::move(shown), std::move(walk)};
}

// The word in the target, or in the source for --kind encoder.
PairWordChoice word_choice(const AttendOptions& options, const AttendedTexts& pair) {
  PairWordChoice choice{.layer = options.layer, .head = options.head};
  if (options.kind == "encoder") choice.side = PairSide::source;
  const bool is_source = choice.side == PairSide::source;
  const std::vector<TextWord>& words = pair.words(choice.side);
  try {
    const TextWord& found = find_word(words, options.word, options.occurrence);
    choice.word = static_cast<std::size_t>(&found - words.data());
  } catch (const Error& error) {
    fail(error.code(), "in the {}: {}{}", is_source ? "source" : "target", error.what(),
         is_source ? "" : "; --kind encoder looks in the source");
  }
  return choice;
}

OrderedJson weights_json(const std::vector<float>& weights) {
  OrderedJson list = OrderedJson::array();
  for (const float weight : weights) list.push_back(json_number(weight));
  return list;
}

OrderedJson pair_word_json(const AttendedTexts& pair, const PairWordChoice& choice) {
  OrderedJson document{{"side", choice.side == PairSide::source ? "source" : "target"},
                       {"word", choice.word}};
  document["layer"] = choice.layer ? OrderedJson(*choice.layer) : OrderedJson(nullptr);
  document["head"] = choice.head ? OrderedJson(*choice.head) : OrderedJson(nullptr);
  if (choice.side == PairSide::source) {
    document["encoder"] = weights_json(word_weights(pair, encoder_site, choice, WordRow::read));
    return document;
  }
  for (const AttentionSite kind : {decoder_site, cross_site}) {
    document[std::string(site_name(kind))] =
        weights_json(word_weights(pair, kind, choice, WordRow::written));
  }
  return document;
}

OrderedJson texts_json(const AttendedTexts& texts) {
  const LoadedModel& model = texts.model;
  OrderedJson document{{"model", model.name}};
  if (!texts.is_pair()) {
    document["tokens"] = tokens_json(model, texts.tokens());
    add_reading(document, model, texts.tokens());
    return document;
  }
  document["source"] = text_json(model, texts.pass.texts().source, PairSide::source);
  document["target"] = text_json(model, texts.pass.texts().target, PairSide::target);
  document["target"]["is_translation"] = texts.is_translation;
  document["read"] = read_json(model.reading);
  return document;
}

void add_walk(OrderedJson& document, const AttendOptions& options, const AttendedTexts& texts) {
  if (texts.is_pair()) {
    document["walk"] = pair_word_json(texts, word_choice(options, texts));
    return;
  }
  const auto [word, shown, walk] = walked_word(options, texts);
  document["walk"] = word_walk_json(texts.target_bytes, &word, walk);
  document["example"] = shown.example.empty() ? OrderedJson(nullptr) : OrderedJson(shown.example);
  document["edge"] =
      shown.edge ? shown_edge_json(texts.model, texts.tokens(), *shown.edge) : OrderedJson(nullptr);
}

void add_head(OrderedJson& document, const AttendOptions& options, const AttendedTexts& texts) {
  const AttentionSite site = site_of_head(options, texts.pass.architecture());
  Tensor<float> pattern = texts.pattern(site, *options.layer, *options.head);
  if (options.words) pattern = texts.by_words(site, pattern);
  if (texts.is_pair()) document["site"] = site_name(site);
  document["layer"] = *options.layer;
  document["head"] = *options.head;
  if (texts.is_pair()) document["unit"] = options.words ? "words" : "tokens";
  if (options.words && !texts.is_pair()) document["words"] = units_json(texts.target_words);
  document["pattern"] = pattern_json(pattern);
}

void print_attention_json(const AttendOptions& options, const AttendedTexts& texts) {
  OrderedJson document = texts_json(texts);
  if (options.interventions.any()) document["changed"] = options.interventions.summary();
  if (!options.word.empty()) {
    add_walk(document, options, texts);
    return print_json(document);
  }
  if (options.head) {
    add_head(document, options, texts);
    return print_json(document);
  }
  const std::vector<AttentionSite> sites = chosen_sites(options, texts.pass.architecture());
  const bool is_ranked = options.top > 0 || !texts.is_pair();
  document["heads"] =
      heads_json(is_ranked ? ranked_heads(texts, sites) : scan_heads(texts.pass, sites).all(),
                 options.top, [&](const RankedHead& head) {
                   return pattern_json(texts.pattern(head.site, head.layer, head.head));
                 });
  if (texts.is_pair() && options.interventions.any()) {
    const RecordedPass unedited(texts.model.transformer, texts.pass.texts(), nullptr,
                                {.keep = Keep::one_block});
    document["effect"] = effects_json(texts.model, prediction_effects(unedited, texts.pass));
  }
  print_json(document);
}

void print_attention(const AttendOptions& options, const AttendedTexts& texts) {
  const Screen screen;
  const Architecture& architecture = texts.pass.architecture();
  if (!options.word.empty() && texts.is_pair()) {
    return print_pair_word(texts, word_choice(options, texts), screen);
  }
  if (!options.word.empty()) {
    const auto [word, shown, walk] = walked_word(options, texts);
    return print_word_walk(texts, word, walk, shown, screen);
  }
  if (options.head) {
    const bool in_words = options.words || splits_characters(texts.source_bytes) ||
                          splits_characters(texts.target_bytes);
    return print_head_map(texts,
                          {site_of_head(options, architecture), *options.layer, *options.head},
                          in_words ? MapUnit::words : MapUnit::tokens, screen);
  }
  const std::vector<AttentionSite> sites = chosen_sites(options, architecture);
  if (options.top > 0) {
    const bool by_content = !texts.is_pair() && texts.is_causal();
    print_texts(texts, screen);
    print("\n" + screen.ink.title("Most selective heads") +
          screen.ink.quiet(by_content ? "  weight: mean largest weight on a token further back\n\n"
                                      : "  peak: mean largest weight of a row\n\n"));
    return print_selective_heads(texts, ranked_heads(texts, sites), options.top, screen);
  }
  if (texts.is_pair() && options.interventions.any()) {
    return print_pair_changes(texts, options.interventions.summary(), screen);
  }
  print_head_overview(texts, sites, screen);
}

void attend(const AttendOptions& options) {
  LoadedModel model = load_model(options.model, {}, StacksWanted::any);
  const bool is_pair = model.is_translator();
  if (!is_pair && !options.kind.empty()) {
    fail_usage("--kind needs a translator: other models have one kind");
  }
  check_choice(options, model.architecture());
  ModelTexts read = read_texts(options.text, options.pair, model);
  std::shared_ptr<Interventions> editor =
      make_interventions(options.interventions, model, read.tokens);
  // The head that a word's view shows is looked for in the edited model.
  if (editor != nullptr && !is_pair) model = model.with_editor(std::exchange(editor, nullptr));
  const AttendedTexts texts(model, std::move(read), std::move(editor));
  if (options.json) return print_attention_json(options, texts);
  if (is_pair) tell_of_unread(model, texts.pass.texts().source, PairSide::source);
  tell_of_unread(model, texts.pass.texts().target);
  print_attention(options, texts);
}

}  // namespace

void add_attend_command(Command app) {
  Command command = add_command(app, "attend", "Show attention: all heads, one head, one word");
  auto options = std::make_shared<AttendOptions>();
  add_model_option(*command, options->model);
  add_text_options(*command, options->text);
  command->add_option("--layer", options->layer, "Choose the block of --head, from 0")
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
    if (options->pair.any() || !options->kind.empty() || options->interventions.name_two_texts()) {
      choose_translator(*command, options->model);
    }
    attend(*options);
  });
}

}  // namespace heed::cli
