// heed attend of an encoder-decoder: attention of three kinds, from all heads down to one word.
#include "cli/pair_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/pair_attend.h"
#include "engine/pair_json.h"
#include "engine/views/report_json.h"

namespace heed::cli {
namespace {

std::vector<AttentionSite> chosen_sites(const PairAttendOptions& options,
                                        const Architecture& architecture) {
  const std::span<const AttentionSite> sites = sites_of(architecture);
  if (options.kind.empty()) return {sites.begin(), sites.end()};
  const auto site = site_named(options.kind, architecture);
  if (!site) {
    fail_usage(fmt::format("--kind {} is none of encoder, decoder and cross", options.kind));
  }
  return {*site};
}

AttentionSite site_of_head(const PairAttendOptions& options, const Architecture& architecture) {
  return options.kind.empty() ? cross_site : chosen_sites(options, architecture).front();
}

void check_pair_choice(const PairAttendOptions& options, const Architecture& architecture) {
  if (options.head.has_value() && !options.layer) fail_usage("--head needs --layer");
  if (options.layer && !options.head && options.word.empty()) {
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
  for (const AttentionSite kind : chosen_sites(options, architecture)) {
    if (options.word.empty() && kind != site_of_head(options, architecture)) continue;
    const std::string_view name = site_name(kind);
    check_range("layer", options.layer, architecture.of(kind.stack).layers, name);
    check_range("head", options.head, attention_of(architecture, kind).query_heads, name);
  }
}

// The word in the target, or in the source for --kind encoder.
PairWordChoice word_choice(const PairAttendOptions& options, const AttendedPair& pair) {
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

void print_pair_json(const PairAttendOptions& options, AttendedPair& pair) {
  const Texts& tokens = pair.pass.texts();
  OrderedJson target = pair_text_json(pair.model, PairSide::target, tokens.target);
  target["is_translation"] = pair.is_translation;
  OrderedJson document{{"model", pair.model.name},
                       {"source", pair_text_json(pair.model, PairSide::source, tokens.source)},
                       {"target", std::move(target)}};
  if (options.interventions.any()) document["changed"] = options.interventions.summary();
  if (!options.word.empty()) {
    document["walk"] = word_json(pair, word_choice(options, pair));
    return print_json(document);
  }
  if (options.head) {
    const AttentionSite kind = site_of_head(options, pair.pass.architecture());
    const Tensor<float> pattern = pair.attention.pattern(kind, *options.layer, *options.head);
    document["kind"] = site_name(kind);
    document["layer"] = *options.layer;
    document["head"] = *options.head;
    document["unit"] = options.words ? "words" : "tokens";
    document["pattern"] = options.words
                              ? pattern_json(by_words(pattern, pair.query_words(kind),
                                                      pair.key_words(kind), WordRow::read))
                              : pattern_json(pattern);
    return print_json(document);
  }
  std::vector<PairHeadStatistics> heads;
  for (const AttentionSite kind : chosen_sites(options, pair.pass.architecture())) {
    const auto own = pair_statistics(pair.pass, pair.attention, kind);
    heads.insert(heads.end(), own.begin(), own.end());
  }
  if (options.top > 0) {
    std::ranges::stable_sort(heads, std::greater{}, &PairHeadStatistics::largest);
    heads.resize(std::min(options.top, heads.size()));
  }
  document["heads"] = OrderedJson::array();
  for (const PairHeadStatistics& head : heads) {
    OrderedJson row = pair_statistics_json(head);
    if (options.top == 0) {
      row["pattern"] = pattern_json(pair.attention.pattern(head.kind, head.layer, head.head));
    }
    document["heads"].push_back(std::move(row));
  }
  if (options.interventions.any()) {
    const RecordedPass unedited(*pair.model.model, tokens);
    document["effect"] = pair_effects_json(pair.model, pair_effects(unedited, pair.pass));
  }
  print_json(document);
}

}  // namespace

void attend_pair(const PairModel& model, const TextOptions& text,
                 const PairAttendOptions& options) {
  check_pair_choice(options, model.architecture());
  PairTexts texts = read_pair(text, options.pair, model);
  const std::shared_ptr<Interventions> editor =
      make_interventions(options.interventions, model, texts.tokens);
  AttendedPair pair(model, std::move(texts), editor);
  if (options.json) return print_pair_json(options, pair);
  const Screen screen;
  if (!options.word.empty()) return print_pair_word(pair, word_choice(options, pair), screen);
  if (options.head) {
    return print_pair_map(
        pair, {site_of_head(options, pair.pass.architecture()), *options.layer, *options.head},
        options.words ? MapUnit::words : MapUnit::tokens, screen);
  }
  if (options.top > 0)
    return print_pair_heads(pair, chosen_sites(options, pair.pass.architecture()), options.top,
                            screen);
  if (editor != nullptr) return print_pair_changes(pair, options.interventions.summary(), screen);
  print_pair_overview(pair, chosen_sites(options, pair.pass.architecture()), screen);
}

}  // namespace heed::cli
