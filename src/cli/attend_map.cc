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

void print_head_map(const AttendedTexts& texts, const HeadChoice& choice, MapUnit unit,
                    const Screen& screen) {
  Tensor<float> weights = texts.pattern(choice.site, choice.layer, choice.head);
  const AttendedSite site = texts.site(choice.site);
  print_texts(texts, screen);
  const std::string title =
      texts.is_pair()
          ? fmt::format("{}, block {}, head {}", site_title(choice.site), choice.layer, choice.head)
          : fmt::format("Layer {}, head {}", choice.layer, choice.head);
  print_map_heading(title, site.habit(weights, choice.layer), site.scope, unit, screen);
  if (unit == MapUnit::words) weights = texts.by_words(choice.site, weights);
  const auto names = [&](PairSide side) {
    std::vector<std::string> names;
    if (unit == MapUnit::tokens) {
      for (const std::string& token : texts.bytes(side)) names.push_back(named_bytes(token));
    } else {
      for (const TextWord& word : texts.words(side)) names.push_back(word.text);
    }
    return names;
  };
  print_weights_map({.queries = names(texts.query_side(choice.site)),
                     .keys = names(texts.key_side(choice.site)),
                     .weights = weights.view(),
                     .is_causal = site.scope == AttentionScope::past},
                    screen);
}

}  // namespace heed::cli
