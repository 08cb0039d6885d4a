// One head's attention pattern as a map: queries down, keys across.
#include <fmt/format.h>

#include <algorithm>

#include "cli/attend.h"
#include "cli/output.h"
#include "cli/terminal/heat_map.h"
#include "cli/terminal/text.h"
#include "engine/token_json.h"
#include "tokenizer/utf8.h"

namespace heed::cli {
namespace {

constexpr int widest_label = 12;
constexpr int number_width = 4;
constexpr int note_width = 22;  // "→ ␣creature 42 %" behind a row
constexpr int tallest_label = 10;

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = read_utf8(text, i).length;
    list.push_back(text.substr(i, length));
    i += length;
  }
  return list;
}

// What a map shows: the tokens, or the words, and the weights between them.
struct Map {
  std::vector<std::string> names;
  Tensor<float> by_words;     // present for a map of words
  View<const float> pattern;  // (names, names)

  int size() const { return static_cast<int>(names.size()); }
  std::string label(int i, int width) const {
    return fit(visible(names[static_cast<std::size_t>(i)]), width);
  }
};

Map map_of(const AttendedText& text, const HeadChoice& choice, MapUnit unit) {
  const View<const float> pattern = text.pattern(choice.layer, choice.head);
  if (unit == MapUnit::tokens) return {.names = text.bytes, .by_words = {}, .pattern = pattern};
  Map map;
  const std::vector<TextWord> units = text_units(text.model, text.tokens);
  for (const TextWord& word : units) map.names.push_back(word.text);
  map.by_words = by_unit(units, pattern);
  map.pattern = map.by_words.view();
  return map;
}

// The names above their columns, written downwards, ending at the map.
void print_column_labels(const Map& text, int cell, int margin, const Screen& screen) {
  std::vector<std::vector<std::string>> labels;
  std::size_t height = 0;
  for (int s = 0; s < text.size(); ++s) {
    labels.push_back(characters(text.label(s, tallest_label)));
    height = std::max(height, labels.back().size());
  }
  for (std::size_t line = 0; line < height; ++line) {
    std::string row(margin, ' ');
    for (const auto& label : labels) {
      const std::size_t skipped = height - label.size();
      row += pad_right(line < skipped ? " " : label[line - skipped], cell);
    }
    print(screen.ink.quiet(row) + "\n");
  }
}

std::string strongest_note(const Map& text, int t, const Screen& screen) {
  const View<const float> pattern = text.pattern;
  int best = 0;
  for (int s = 1; s <= t; ++s) {
    if (pattern(t, s) > pattern(t, best)) best = s;
  }
  return fmt::format(" → {} {}", text.label(best, note_width - 9),
                     screen.ink.quiet(percent(pattern(t, best))));
}

// For a text with more tokens than columns: neighbouring tokens share a cell.
void print_reduced_map(const Map& text, const Screen& screen) {
  const View<const float> pattern = text.pattern;
  const int columns = std::min(screen.width() - 2, 160);
  const Picture picture = half_block_picture(
      text.size(), columns,
      [&](int row, int column) { return column > row ? -1.0 : double{pattern(row, column)}; },
      screen.ink);
  for (const std::string& line : picture.lines) print("  " + line + "\n");
  print(screen.ink.quiet(
      fmt::format("  {} {} in {} columns: a cell shows the largest weight that it covers.\n",
                  text.size(), text.by_words.present() ? "words" : "tokens", picture.columns)));
}

}  // namespace

void print_head_map(const AttendedText& attended, const HeadChoice& choice, MapUnit unit,
                    const Screen& screen) {
  const HeadStatistics statistics = head_statistics(attended.pattern(choice.layer, choice.head));
  const Map text = map_of(attended, choice, unit);
  const Ink& ink = screen.ink;
  print("\n" + ink.title(fmt::format("Layer {}, head {}", choice.layer, choice.head)) +
        ink.quiet("  mostly " + habit_text(statistics) + "; counted from 0\n"));
  print(ink.quiet("  Rows are queries, columns keys; the weights of a row sum to 100 %.\n"));
  if (unit == MapUnit::words) {
    print(ink.quiet(
        "  A word's row is that of its last token; the weights of its tokens are summed.\n"));
  }
  print("\n");

  int label_width = 0;
  for (int t = 0; t < text.size(); ++t) {
    label_width = std::max(label_width, display_width(text.label(t, widest_label)));
  }
  const int margin = 2 + number_width + label_width + 1;
  const int room = screen.width() - margin;
  if (text.size() > room) {
    print_reduced_map(text, screen);
  } else {
    const int cell = 2 * text.size() <= room ? 2 : 1;
    const bool with_notes = cell * text.size() + note_width <= room;
    print_column_labels(text, cell, margin, screen);
    for (int t = 0; t < text.size(); ++t) {
      std::string row = "  " + ink.quiet(pad_left(std::to_string(t), number_width - 1)) + " " +
                        pad_left(text.label(t, label_width), label_width) + " ";
      for (int s = 0; s < text.size(); ++s) {
        row += heat_cell(s > t ? -1.0 : double{text.pattern(t, s)}, cell, ink);
      }
      if (with_notes) row += strongest_note(text, t, screen);
      print(row + "\n");
    }
  }
  print("\n");
  for (const std::string& line : scale_legend(ink)) {
    print(std::string(std::min(margin, 18), ' ') + line + "\n");
  }
}

}  // namespace heed::cli
