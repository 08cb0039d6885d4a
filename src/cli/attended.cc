// What the views of attention show: a text, or a source and a target.
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <string>

#include "base/utf8.h"
#include "cli/attend.h"
#include "cli/output.h"
#include "cli/terminal/text.h"
#include "cli/weights_map.h"
#include "engine/views/token_json.h"

namespace heed::cli {

namespace {

void print_text_line(std::string_view title, const std::vector<TextWord>& words,
                     std::string_view note, const Screen& screen) {
  std::string text;
  for (const TextWord& word : words) text += (text.empty() ? "" : " ") + visible(word.text);
  const int indent = 10;
  bool is_first = true;
  for (const std::string& line : wrap(text, std::max(screen.width() - indent - 2, 20))) {
    print("  " + screen.ink.quiet(pad_right(is_first ? title : "", indent - 2)) + line + "\n");
    is_first = false;
  }
  if (!note.empty()) print(std::string(indent, ' ') + screen.ink.quiet(note) + "\n");
}

}  // namespace

AttendedTexts::AttendedTexts(const LoadedModel& loaded, ModelTexts texts,
                             std::shared_ptr<Interventions> editor)
    : model(loaded),
      is_translation(texts.is_translation),
      pass(loaded.transformer, std::move(texts.tokens), std::move(editor), {.keep = Keep::points}),
      source_bytes(model.token_bytes(pass.texts().source, PairSide::source)),
      target_bytes(model.token_bytes(pass.texts().target)),
      source_words(text_units(model, pass.texts().source, PairSide::source)),
      target_words(text_units(model, pass.texts().target)) {}

std::string AttendedTexts::label(std::int64_t position, int width) const {
  return fit(visible(named_bytes(target_bytes[position])), width);
}

bool splits_characters(std::span<const std::string> tokens) {
  return std::ranges::any_of(tokens,
                             [](const std::string& token) { return !is_valid_utf8(token); });
}

std::string AttendedTexts::described(std::int64_t position) const {
  for (const TextWord& word : text_words(model, tokens())) {
    if (position < word.begin || position >= word.end) continue;
    if (word.end - word.begin == 1) return "“" + visible(word.text) + "”";
    return fmt::format("{} (of “{}”)", label(position, 16), visible(word.text));
  }
  return label(position, 16);
}

HeadHabitStrength AttendedSite::habit(View<const float> pattern, std::int64_t layer) const {
  return strongest_habit(head_statistics(pattern, attention.window(layer), tokens, scope));
}

std::string habit_text(const HeadHabitStrength& habit) {
  if (habit.habit == HeadHabit::back) return fmt::format("{:.1f} back", habit.strength);
  const std::string_view name =
      habit.habit == HeadHabit::previous ? "prev" : habit_name(habit.habit);
  return fmt::format("{} {}", name, percent(habit.strength));
}

AttendedSite AttendedTexts::site(AttentionSite site) const {
  const Architecture& architecture = pass.architecture();
  const AttentionScope scope = attention_scope(architecture, site);
  std::span<const std::int32_t> read;
  if (scope != AttentionScope::other_text) {
    read = query_side(site) == PairSide::source ? pass.texts().source : pass.texts().target;
  }
  return {scope, attention_of(architecture, site), read};
}

void print_texts(const AttendedTexts& texts, const Screen& screen) {
  if (!texts.is_pair()) return;
  print("\n");
  print_text_line("source", texts.source_words, "", screen);
  print_text_line("target", texts.target_words,
                  texts.is_translation ? "the model's own translation, greedily" : "", screen);
}

std::string_view site_title(AttentionSite site) {
  if (site == cross_site) return "Cross-attention";
  return site == encoder_site ? "Encoder" : "Decoder";
}

std::vector<float> word_weights(const AttendedTexts& pair, AttentionSite site,
                                const PairWordChoice& choice, WordRow row) {
  const Architecture& architecture = pair.pass.architecture();
  const std::int64_t layer = choice.layer.value_or(architecture.of(site.stack).layers - 1);
  const std::int64_t heads = attention_of(architecture, site).query_heads;
  const std::int64_t first = choice.head.value_or(0), end = choice.head ? first + 1 : heads;
  std::vector<float> sums(pair.words(pair.key_side(site)).size(), 0.0F);
  for (std::int64_t head = first; head < end; ++head) {
    const Tensor<float> words = pair.by_words(site, pair.pattern(site, layer, head), row);
    const std::span<const float> own = words.view()[static_cast<std::int64_t>(choice.word)].span();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += own[i] / static_cast<float>(end - first);
    }
  }
  return sums;
}

namespace {

// The lines above a map.
void print_map_heading(const std::string& title, const HeadHabitStrength& habit,
                       AttentionScope scope, MapUnit unit, const Screen& screen) {
  const Ink& ink = screen.ink;
  print("\n" + ink.title(title) +
        ink.quiet("  mostly " + habit_text(habit) + "; counted from 0\n"));
  print(
      ink.quiet(scope == AttentionScope::other_text
                    ? "  Rows are the target, columns the source; weights of a row sum to 100 %.\n"
                    : "  Rows are queries, columns keys; the weights of a row sum to 100 %.\n"));
  if (unit == MapUnit::words) {
    print(ink.quiet(
        "  A word's row is that of its last token; the weights of its tokens are summed.\n"));
  }
  print("\n");
}

}  // namespace

void print_head_map(const AttendedTexts& texts, const HeadChoice& choice, MapUnit unit,
                    const Screen& screen) {
  Tensor<float> weights = texts.pattern(choice.site, choice.layer, choice.head);
  const AttendedSite site = texts.site(choice.site);
  print_texts(texts, screen);
  const std::string title =
      texts.is_pair()
          ? fmt::format("{}, block {}, head {}", site_title(choice.site), choice.layer, choice.head)
          : fmt::format("Block {}, head {}", choice.layer, choice.head);
  print_map_heading(title, site.habit(weights, choice.layer), site.scope, unit, screen);
  if (unit == MapUnit::words) weights = texts.by_words(choice.site, weights);
  const auto names = [&](PairSide side) {
    std::vector<std::string> found;
    if (unit == MapUnit::tokens) {
      for (const std::string& token : texts.bytes(side)) found.push_back(named_bytes(token));
    } else {
      for (const TextWord& word : texts.words(side)) found.push_back(word.text);
    }
    return found;
  };
  print_weights_map({.queries = names(texts.query_side(choice.site)),
                     .keys = names(texts.key_side(choice.site)),
                     .weights = weights.view(),
                     .is_causal = site.scope == AttentionScope::past},
                    screen);
}

namespace {

std::string told_of(const AttendedTexts& text, const ShownEdge& edge) {
  const auto name = [&](const TokenChange& change) {
    return fit(visible(text.model.token_bytes(change.token)), 16);
  };
  std::string says =
      fmt::format("{}ith the edge to {} cut, {} goes from {} to {}",
                  edge.decides() ? "W" : "No single edge decides this: w",
                  fit(text.label(edge.effect.edge.key.begin, 24), 20), name(edge.likeliest),
                  percent(edge.likeliest.before), percent(edge.likeliest.after));
  if (edge.decides() && !edge.gained.empty()) {
    const TokenChange& gained = edge.gained.front();
    says += fmt::format(", and {} from {} to {}", name(gained), percent(gained.before),
                        percent(gained.after));
  }
  return says + ".";
}

// Heads as sentences name them: "block 4, head 1" for "L4H1".
std::string in_words(const std::string& sentences) {
  static const std::regex name("(^|[.!?] )?\\bL([0-9]+)H([0-9]+)\\b");
  std::string text;
  auto at = sentences.cbegin();
  for (std::sregex_iterator found(sentences.begin(), sentences.end(), name), end; found != end;
       ++found) {
    text.append(at, (*found)[0].first);
    text += fmt::format("{}{} {}, head {}", found->str(1), (*found)[1].matched ? "Block" : "block",
                        found->str(2), found->str(3));
    at = (*found)[0].second;
  }
  return text.append(at, sentences.cend());
}

}  // namespace

std::vector<TokenRun> shown_keys(const AttendedTexts& text) {
  if (!splits_characters(text.target_bytes)) return single_tokens(text.size());
  return token_runs(text.target_words);
}

std::string why_shown(const AttendedTexts& text, const HeadToShow& shown) {
  if (!shown.example.empty()) {
    return fmt::format("The example “{}” is about this head. {}", shown.example,
                       in_words(shown.caption));
  }
  return shown.edge ? told_of(text, *shown.edge) : "";
}

}  // namespace heed::cli
