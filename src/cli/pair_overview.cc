// All heads of an encoder-decoder at once: each as a picture of its pattern.
#include <fmt/format.h>

#include <algorithm>

#include "cli/output.h"
#include "cli/pair_attend.h"
#include "cli/terminal/heat_map.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr int pair_label_columns = 4;  // "L11 "
constexpr int narrowest_pair_picture = 10;
constexpr int widest_pair_picture = 20;

std::string_view explained_site(AttentionSite site) {
  if (site == encoder_site) return "the source attends to itself, in both directions";
  return site == decoder_site ? "the target attends to its own past"
                              : "the target attends to the source";
}

ShareAt shares_of(const Tensor<float>& pattern, AttentionSite kind) {
  return [&pattern, kind](int row, int column) {
    const bool is_masked = kind == decoder_site && column > row;
    return is_masked ? -1.0 : double{pattern.view()(row, column)};
  };
}

void print_kind_layer(AttendedPair& pair, AttentionSite kind, std::int64_t layer,
                      const Screen& screen) {
  const auto heads = static_cast<int>(attention_of(pair.pass.architecture(), kind).query_heads);
  const int room = screen.width() - pair_label_columns;
  const int fitting = std::max(1, room / (narrowest_pair_picture + 1));
  const int lines = (heads + fitting - 1) / fitting;
  const int per_line = (heads + lines - 1) / lines;
  const int width = std::clamp(room / per_line - 1, narrowest_pair_picture, widest_pair_picture);
  const PictureSize size{static_cast<int>(pair.pass.queries(kind)),
                         static_cast<int>(pair.pass.keys(kind))};
  for (int first = 0; first < heads; first += per_line) {
    std::vector<Picture> pictures;
    std::string names = std::string(pair_label_columns, ' '), captions = names;
    for (int head = first; head < std::min(heads, first + per_line); ++head) {
      const Tensor<float> pattern = pair.attention.pattern(kind, layer, head);
      pictures.push_back(half_block_picture(size, width, shares_of(pattern, kind), screen.ink));
      names += pad_right(fmt::format("L{}H{}", layer, head), width + 1);
      const HeadHabitStrength habit = strongest_habit(pair_head_statistics(pattern, kind));
      captions += pad_right(fit(habit_text(habit), width), width + 1);
    }
    print(screen.ink.bold(names) + "\n");
    for (std::size_t line = 0; line < pictures.front().lines.size(); ++line) {
      std::string row(pair_label_columns, ' ');
      for (const Picture& picture : pictures) {
        row += picture.lines[line] + std::string(width + 1 - picture.columns, ' ');
      }
      print(row + "\n");
    }
    print(screen.ink.quiet(captions) + "\n\n");
  }
}

void print_wrapped(std::string_view paragraph, const Screen& screen) {
  for (const std::string& line : wrap(paragraph, screen.width() - 2)) {
    print("  " + screen.ink.quiet(line) + "\n");
  }
}

struct ListedHead {
  PairHeadStatistics statistics;
  std::int64_t query = 0;
  std::int64_t key = 0;
  float weight = 0;  // the largest, of those that are not on the query's own token
};

ListedHead listed_head(AttendedPair& pair, const PairHeadStatistics& statistics) {
  const Tensor<float> pattern =
      pair.attention.pattern(statistics.kind, statistics.layer, statistics.head);
  ListedHead head{.statistics = statistics};
  for (std::int64_t t = 0; t < pattern.shape()[0]; ++t) {
    for (std::int64_t s = 0; s < pattern.shape()[1]; ++s) {
      if (statistics.kind != cross_site && s == t) continue;
      if (statistics.kind == decoder_site && (s == 0 || s > t)) continue;
      if (pattern.view()(t, s) > head.weight) {
        head = {statistics, t, s, pattern.view()(t, s)};
      }
    }
  }
  return head;
}

}  // namespace

void print_pair_overview(AttendedPair& pair, const std::vector<AttentionSite>& kinds,
                         const Screen& screen) {
  print_pair_texts(pair, screen);
  for (const AttentionSite kind : kinds) {
    const Architecture& architecture = pair.pass.architecture();
    print("\n  " + screen.ink.title(site_title(kind)) +
          screen.ink.quiet(
              fmt::format("  {}; {} of {}\n", explained_site(kind),
                          counted(architecture.of(kind.stack).layers, "layer"),
                          counted(attention_of(architecture, kind).query_heads, "head"))));
    print("\n");
    for (std::int64_t layer = 0; layer < architecture.of(kind.stack).layers; ++layer) {
      print_kind_layer(pair, kind, layer, screen);
    }
  }
  for (const std::string& line : scale_legend(screen.ink)) print("  " + line + "\n");
  print("\n");
  print_wrapped(
      "One picture per head; L0H1 is head 1 of layer 0. Rows are queries, columns are keys, the "
      "first at the top and left. first, last, self, prev, next: mean weight on that token. even: "
      "how close to uniform attention. peak: mean largest weight of a row. back: mean distance in "
      "tokens.",
      screen);
  print_wrapped("--kind cross --layer L --head H shows one head, --word WORD one word.", screen);
}

void print_pair_heads(AttendedPair& pair, const std::vector<AttentionSite>& kinds,
                      std::size_t count, const Screen& screen) {
  std::vector<PairHeadStatistics> heads;
  for (const AttentionSite kind : kinds) {
    const std::vector<PairHeadStatistics> own = pair_statistics(pair.pass, pair.attention, kind);
    heads.insert(heads.end(), own.begin(), own.end());
  }
  std::ranges::stable_sort(heads, std::greater{}, &PairHeadStatistics::largest);
  heads.resize(std::min(count, heads.size()));
  print_pair_texts(pair, screen);
  print("\n" + screen.ink.title("Most selective heads") +
        screen.ink.quiet("  peak: mean largest weight of a row\n\n"));
  Table table({{"head", Align::left},
               {"mostly", Align::left},
               {"peak", Align::right},
               {"largest weight on another token", Align::left}});
  for (const PairHeadStatistics& statistics : heads) {
    const ListedHead head = listed_head(pair, statistics);
    const auto query_names = pair.query_names(statistics.kind, MapUnit::tokens);
    const auto key_names = pair.key_names(statistics.kind, MapUnit::tokens);
    table.add(
        {screen.ink.paint(fmt::format("{}.L{}H{}", site_name(statistics.kind), statistics.layer,
                                      statistics.head),
                          colour::orange),
         habit_text(strongest_habit(statistics)), percent(statistics.largest),
         fmt::format(
             "{} → {}  {}",
             screen.ink.bold(fit(visible(query_names[static_cast<std::size_t>(head.query)]), 14)),
             screen.ink.bold(fit(visible(key_names[static_cast<std::size_t>(head.key)]), 14)),
             percent(head.weight))});
  }
  print(table.text(screen.ink));
}

}  // namespace heed::cli
