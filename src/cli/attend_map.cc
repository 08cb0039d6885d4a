// One head as a map: queries down, keys across.
#include <fmt/format.h>

#include "cli/attend.h"
#include "cli/output.h"
#include "cli/weights_map.h"
#include "engine/views/token_json.h"

namespace heed::cli {
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

void print_head_map(const AttendedText& text, const HeadChoice& choice, MapUnit unit,
                    const Screen& screen) {
  const View<const float> pattern = text.pattern(choice.layer, choice.head);
  const AttendedSite site = text.site();
  print_map_heading(fmt::format("Layer {}, head {}", choice.layer, choice.head),
                    site.habit(pattern, choice.layer), site.scope, unit, screen);
  if (unit == MapUnit::tokens) {
    return print_weights_map({text.bytes, text.bytes, pattern, text.is_causal()}, screen);
  }
  const std::vector<TextWord> units = text_units(text.model, text.tokens);
  const Tensor<float> of_words = by_unit(units, pattern);
  std::vector<std::string> names;
  for (const TextWord& word : units) names.push_back(word.text);
  print_weights_map({names, names, of_words.view(), text.is_causal()}, screen);
}

void print_pair_map(AttendedPair& pair, const PairHeadChoice& choice, MapUnit unit,
                    const Screen& screen) {
  Tensor<float> weights = pair.attention.pattern(choice.kind, choice.layer, choice.head);
  const AttendedSite site = pair.site(choice.kind);
  print_pair_texts(pair, screen);
  print_map_heading(
      fmt::format("{}, block {}, head {}", site_title(choice.kind), choice.layer, choice.head),
      site.habit(weights, choice.layer), site.scope, unit, screen);
  if (unit == MapUnit::words) {
    weights = by_words(weights, pair.query_words(choice.kind), pair.key_words(choice.kind),
                       WordRow::read);
  }
  print_weights_map({.queries = pair.query_names(choice.kind, unit),
                     .keys = pair.key_names(choice.kind, unit),
                     .weights = weights.view(),
                     .is_causal = site.scope == AttentionScope::past},
                    screen);
}

}  // namespace heed::cli
