// All heads at once: each as a picture of its pattern, with the habit that says most about it.
#include <fmt/format.h>

#include <algorithm>

#include "cli/attend.h"
#include "cli/output.h"
#include "cli/terminal/heat_map.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr int label_columns = 4;  // "L11 "
constexpr int narrowest = 6;
constexpr int widest_picture = 16;
constexpr int width_for_words = 10;  // a caption of whole words fits

// How the pictures of one layer share a line.
struct Layout {
  int picture = widest_picture;  // columns of a picture
  int per_line = 1;              // pictures on a line
};

Layout layout_for(int heads, int width) {
  const int room = width - label_columns;
  const int fitting = std::max(1, room / (narrowest + 1));
  const int lines = (heads + fitting - 1) / fitting;
  const int per_line = (heads + lines - 1) / lines;
  return {.picture = std::clamp(room / per_line - 1, narrowest, widest_picture),
          .per_line = per_line};
}

// In a caption too narrow for words.
std::string short_habit(const HeadHabitStrength& habit) {
  if (habit.habit == HeadHabit::back) return fmt::format("←{:.1f}", habit.strength);
  const char letter = habit.habit == HeadHabit::even ? '=' : habit_name(habit.habit).front();
  return fmt::format("{} {:.0f}%", letter, 100 * habit.strength);
}

std::string caption(const AttendedText& text, View<const float> pattern, std::int64_t layer,
                    int columns) {
  const HeadHabitStrength habit = text.habit(pattern, layer);
  return columns >= width_for_words || !text.is_causal() ? habit_text(habit) : short_habit(habit);
}

// patterns (H, T, T)
void print_layer(const AttendedText& text, std::int64_t layer, View<const float> patterns,
                 const Layout& layout, const Screen& screen) {
  const auto heads = static_cast<int>(patterns.extent(0));
  const auto positions = static_cast<int>(patterns.extent(1));
  for (int first = 0; first < heads; first += layout.per_line) {
    const int end = std::min(heads, first + layout.per_line);
    std::vector<Picture> pictures;
    std::string names(label_columns, ' ');
    std::string captions(label_columns, ' ');
    for (int head = first; head < end; ++head) {
      const View<const float> pattern = patterns[head];
      pictures.push_back(half_block_picture(
          {positions, positions}, layout.picture,
          [&](int row, int column) {
            const bool is_masked = text.is_causal() && column > row;
            return is_masked ? -1.0 : double{pattern(row, column)};
          },
          screen.ink));
      const int columns = layout.picture + 1;
      names += pad_right(fmt::format("L{}H{}", layer, head), columns);
      captions +=
          pad_right(fit(caption(text, pattern, layer, layout.picture), layout.picture), columns);
    }
    print(screen.ink.bold(names) + "\n");
    for (std::size_t line = 0; line < pictures.front().lines.size(); ++line) {
      std::string row(label_columns, ' ');
      for (const Picture& picture : pictures) {
        row += pad_right(picture.lines[line], layout.picture + 1);
      }
      print(row + "\n");
    }
    print(screen.ink.quiet(captions) + "\n\n");
  }
}

void print_lines(std::string_view paragraph, const Screen& screen) {
  for (const std::string& line : wrap(paragraph, screen.width() - 2)) {
    print("  " + screen.ink.quiet(line) + "\n");
  }
}

}  // namespace

void print_head_overview(const AttendedText& text, const Screen& screen) {
  const StackSpecification& config = text.model.gpt.specification();
  const Layout layout = layout_for(static_cast<int>(config.heads()), screen.width());
  print("\n" + screen.ink.title("Attention patterns") +
        screen.ink.quiet(fmt::format("  {}, {} of {}\n", counted(text.size(), "token"),
                                     counted(config.layers, "layer"),
                                     counted(config.heads(), "head"))));
  print_lines(
      "One picture per head; L0H1 is head 1 of layer 0. Rows are queries, columns are keys.",
      screen);
  print("\n");
  visit_patterns(text.model.gpt, text.tokens, [&](std::int64_t layer, View<const float> patterns) {
    print_layer(text, layer, patterns, layout, screen);
  });
  for (const std::string& line : scale_legend(screen.ink)) print("  " + line + "\n");
  print("\n");
  if (!text.is_causal()) {
    return print_lines(
        "An encoder: every token attends to all, before and after it. first, last, self, prev, "
        "next: mean weight on that token. even: how close to uniform attention. peak: mean largest "
        "weight of a row.",
        screen);
  }
  print_lines(
      layout.picture >= width_for_words
          ? "first, self, prev: mean weight on the first token, on the token itself, on the "
            "previous one. duplicate, induction: on earlier copies of the token, on the tokens "
            "after them. even: how close to uniform attention. back: mean distance in tokens."
          : "Mean weight on the first token (f), on the token itself (s), on the previous "
            "one (p), on earlier copies (d), on the tokens after them (i); how close to uniform "
            "attention (=); mean distance in tokens (←).",
      screen);
}

void print_selective_heads(const AttendedText& text, const std::vector<RankedHead>& heads,
                           std::size_t count, const Screen& screen) {
  struct Pick {
    int query = 0;
    int key = 0;
    float weight = 0;
  };
  const auto clearest_pick = [&](const View<const float>& pattern) {
    Pick best;
    for (int t = 2; t < text.size(); ++t) {
      for (int s = 1; s < t - 1; ++s) {
        if (pattern(t, s) > best.weight) best = {t, s, pattern(t, s)};
      }
    }
    return best;
  };
  Table table({{"head", Align::left},
               {"mostly", Align::left},
               {"weight", Align::right},
               {"largest weight", Align::left}});
  for (const RankedHead& ranked : std::span(heads).first(std::min(count, heads.size()))) {
    const Pick pick = clearest_pick(text.pattern(ranked.layer, ranked.head));
    std::string example = screen.ink.quiet("none: the text is too short");
    if (pick.weight > 0) {
      example =
          fmt::format("{} → {}  {}", screen.ink.bold(text.label(pick.query, 12)),
                      screen.ink.bold(fit(text.described(pick.key), 26)), percent(pick.weight));
    }
    const std::string name = fmt::format("L{}H{}", ranked.layer, ranked.head);
    table.add({screen.ink.paint(name, colour::orange),
               habit_text(strongest_habit(ranked.statistics)),
               percent(ranked.statistics.content_weight), example});
  }
  print(table.text(screen.ink));
}

}  // namespace heed::cli
