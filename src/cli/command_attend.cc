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
#include "cli/pair_command.h"
#include "cli/unread.h"
#include "engine/head_to_show.h"
#include "engine/loaded_model.h"
#include "engine/views/reading_json.h"
#include "engine/views/report_json.h"
#include "engine/views/shown_edge_json.h"
#include "engine/views/token_json.h"
#include "microscope/attention/head_scan.h"

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
HeadToShow head_for_word(const AttendOptions& options, const AttendedText& text,
                         const TextWord& word) {
  if (options.layer)
    return {.head = {*options.layer, *options.head}, .example = {}, .caption = {}, .edge = {}};
  if (!text.is_causal()) {
    fail_usage(fmt::format(
        "'{}' is an encoder: it predicts no next token by which --word could choose a head; give "
        "--layer and --head",
        text.model.name));
  }
  return head_to_show(text.model, text.tokens,
                      {.word = {word.begin, word.end}, .keys = shown_keys(text)}, interrupt_flag());
}

WordWalk walk(const AttendedText& text, const TextWord& word, const HeadName& choice) {
  const Transformer& transformer = text.model.transformer;
  const Capture capture =
      trace(transformer, text.tokens, word_walk_points(transformer.specification(), choice.layer));
  return walk_word(transformer, capture, choice.layer, choice.head, word.last());
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

std::vector<RankedHead> ranked(const AttendedText& text) {
  return rank_heads(text.patterns, text.model.transformer.specification().block.attention,
                    text.tokens);
}

void print_attention_json(const AttendOptions& options, const AttendedText& text) {
  OrderedJson document{{"model", text.model.name},
                       {"tokens", tokens_json(text.model, text.tokens)}};
  add_reading(document, text.model, text.tokens);
  if (options.interventions.any()) document["changed"] = options.interventions.summary();
  if (!options.word.empty()) {
    const std::vector<TextWord> words = text_words(text.model, text.tokens);
    const TextWord& word = find_word(words, options.word, options.occurrence);
    const HeadToShow choice = head_for_word(options, text, word);
    document["walk"] = word_walk_json(text.bytes, &word, walk(text, word, choice.head));
    document["example"] =
        choice.example.empty() ? OrderedJson(nullptr) : OrderedJson(choice.example);
    document["edge"] =
        choice.edge ? shown_edge_json(text.model, text.tokens, *choice.edge) : OrderedJson(nullptr);
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
  document["heads"] = heads_json(ranked(text), options.top, [&](const RankedHead& head) {
    return pattern_json(text.pattern(head.layer, head.head));
  });
  print_json(document);
}

// The word in the target, or in the source for --kind encoder.
PairWordChoice word_choice(const AttendOptions& options, const AttendedPair& pair) {
  PairWordChoice choice{.layer = options.layer, .head = options.head};
  if (options.kind == "encoder") choice.side = PairSide::source;
  const bool is_source = choice.side == PairSide::source;
  const std::vector<TextWord>& words = is_source ? pair.source_words : pair.target_words;
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

OrderedJson word_json(AttendedPair& pair, const PairWordChoice& choice) {
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

void print_pair_json(const AttendOptions& options, AttendedPair& pair) {
  const Texts& tokens = pair.pass.texts();
  OrderedJson target = text_json(pair.model, tokens.target, PairSide::target);
  target["is_translation"] = pair.is_translation;
  OrderedJson document{{"model", pair.model.name},
                       {"source", text_json(pair.model, tokens.source, PairSide::source)},
                       {"target", std::move(target)},
                       {"read", read_json(pair.model.reading)}};
  if (options.interventions.any()) document["changed"] = options.interventions.summary();
  if (!options.word.empty()) {
    document["walk"] = word_json(pair, word_choice(options, pair));
    return print_json(document);
  }
  if (options.head) {
    const AttentionSite kind = site_of_head(options, pair.pass.architecture());
    const Tensor<float> pattern = pair.attention.pattern(kind, *options.layer, *options.head);
    document["site"] = site_name(kind);
    document["layer"] = *options.layer;
    document["head"] = *options.head;
    document["unit"] = options.words ? "words" : "tokens";
    document["pattern"] = options.words
                              ? pattern_json(by_words(pattern, pair.query_words(kind),
                                                      pair.key_words(kind), WordRow::read))
                              : pattern_json(pattern);
    return print_json(document);
  }
  const std::vector<AttentionSite> sites = chosen_sites(options, pair.pass.architecture());
  document["heads"] =
      heads_json(options.top > 0 ? ranked_heads(pair, sites) : scan_heads(pair.pass, sites).all(),
                 options.top, [&](const RankedHead& head) {
                   return pattern_json(pair.attention.pattern(head.site, head.layer, head.head));
                 });
  if (options.interventions.any()) {
    const RecordedPass unedited(pair.model.transformer, tokens, nullptr, {.keep = Keep::one_block});
    document["effect"] = effects_json(pair.model, prediction_effects(unedited, pair.pass));
  }
  print_json(document);
}

void attend_pair(const LoadedModel& model, const AttendOptions& options) {
  check_choice(options, model.architecture());
  ModelTexts texts = read_texts(options.text, options.pair, model);
  const std::shared_ptr<Interventions> editor =
      make_interventions(options.interventions, model, texts.tokens);
  AttendedPair pair(model, std::move(texts), editor);
  if (options.json) return print_pair_json(options, pair);
  tell_of_unread(model, pair.pass.texts().source, PairSide::source);
  tell_of_unread(model, pair.pass.texts().target);
  const Screen screen;
  if (!options.word.empty()) return print_pair_word(pair, word_choice(options, pair), screen);
  if (options.head) {
    return print_pair_map(
        pair, {site_of_head(options, pair.pass.architecture()), *options.layer, *options.head},
        options.words || splits_characters(pair.source_bytes) ||
                splits_characters(pair.target_bytes)
            ? MapUnit::words
            : MapUnit::tokens,
        screen);
  }
  if (options.top > 0)
    return print_pair_heads(pair, chosen_sites(options, pair.pass.architecture()), options.top,
                            screen);
  if (editor != nullptr) return print_pair_changes(pair, options.interventions.summary(), screen);
  print_pair_overview(pair, chosen_sites(options, pair.pass.architecture()), screen);
}

void attend(const AttendOptions& options) {
  LoadedModel model = load_model(options.model, {}, StacksWanted::any);
  if (model.is_translator()) return attend_pair(model, options);
  if (!options.kind.empty()) fail_usage("--kind needs a translator: other models have one kind");
  check_choice(options, model.architecture());
  const Texts texts = read_texts(options.text, options.pair, model).tokens;
  const std::vector<std::int32_t>& tokens = texts.target;
  if (auto editor = make_interventions(options.interventions, model, texts)) {
    model = model.with_editor(std::move(editor));
  }
  const AttendedText text(model, tokens,
                          layers_to_keep(options, model.transformer.specification()));
  if (options.json) return print_attention_json(options, text);
  tell_of_unread(model, tokens);
  const Screen screen;
  if (!options.word.empty()) {
    const std::vector<TextWord> words = text_words(text.model, text.tokens);
    const TextWord& word = find_word(words, options.word, options.occurrence);
    const HeadToShow choice = head_for_word(options, text, word);
    return print_word_walk(text, word, walk(text, word, choice.head), choice, screen);
  }
  if (options.layer) {
    return print_head_map(
        text, {*options.layer, *options.head},
        options.words || splits_characters(text.bytes) ? MapUnit::words : MapUnit::tokens, screen);
  }
  if (options.top > 0) {
    print("\n" + screen.ink.title("Most selective heads") +
          screen.ink.quiet(text.is_causal()
                               ? "  weight: mean largest weight on a token further back\n\n"
                               : "  peak: mean largest weight of a row\n\n"));
    return print_selective_heads(text, ranked(text), options.top, screen);
  }
  print_head_overview(text, screen);
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
