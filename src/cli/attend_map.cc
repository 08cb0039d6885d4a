// One head's attention pattern as a map.
#include <fmt/format.h>

#include "cli/attend.h"
#include "cli/output.h"
#include "cli/weights_map.h"
#include "engine/views/token_json.h"

namespace heed::cli {

void print_head_map(const AttendedText& text, const HeadChoice& choice, MapUnit unit,
                    const Screen& screen) {
  const Ink& ink = screen.ink;
  const View<const float> pattern = text.pattern(choice.layer, choice.head);
  print("\n" + ink.title(fmt::format("Layer {}, head {}", choice.layer, choice.head)) +
        ink.quiet("  mostly " + habit_text(text.habit(pattern, choice.layer)) +
                  "; counted from 0\n"));
  print(ink.quiet("  Rows are queries, columns keys; the weights of a row sum to 100 %.\n"));
  if (unit == MapUnit::tokens) {
    print("\n");
    return print_weights_map({text.bytes, text.bytes, pattern, text.is_causal()}, screen);
  }
  print(ink.quiet(
      "  A word's row is that of its last token; the weights of its tokens are summed.\n\n"));
  const std::vector<TextWord> units = text_units(text.model, text.tokens);
  const Tensor<float> of_words = by_unit(units, pattern);
  std::vector<std::string> names;
  for (const TextWord& word : units) names.push_back(word.text);
  print_weights_map({names, names, of_words.view(), text.is_causal()}, screen);
}

}  // namespace heed::cli
