// All heads at once: each as a picture of its pattern, or those that select most as a table.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "cli/attend.h"
#include "cli/output.h"
#include "cli/terminal/heat_map.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "microscope/attention/head_scan.h"

namespace heed::cli {
namespace {

constexpr int label_columns = 4;  // "L11 "
constexpr int narrowest_picture = 6;
constexpr int widest_picture = 20;
constexpr int width_for_words = 10;  // a caption of whole words fits

// How the pictures of one layer share a line.
struct Layout {
  int picture = widest_picture;  // columns of a picture
  int per_line = 1;              // pictures on a line
};

Layout layout_for(const AttendedSite& site, int width) {
  const auto heads = static_cast<int>(site.attention.query_heads);
  const int narrowest = site.scope == AttentionScope::past ? narrowest_picture : width_for_words;
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

void print_layer(const AttendedTexts& texts, AttentionSite at, std::int64_t layer,
                 const Layout& layout, const Screen& screen) {
  const AttendedSite site = texts.site(at);
  const auto heads = static_cast<int>(site.attention.query_heads);
  const PictureSize size{static_cast<int>(texts.pass.queries(at)),
                         static_cast<int>(texts.pass.keys(at))};
  for (int first = 0; first < heads; first += layout.per_line) {
    std::vector<Picture> pictures;
    std::string names(label_columns, ' '), captions = names;
    for (int head = first; head < std::min(heads, first + layout.per_line); ++head) {
      const Tensor<float> plane = texts.pattern(at, layer, head);
      const View<const float> pattern = plane.view();
      pictures.push_back(half_block_picture(
          size, layout.picture,
          [&](int row, int column) {
            const bool is_masked = site.scope == AttentionScope::past && column > row;
            return is_masked ? -1.0 : double{pattern(row, column)};
          },
          screen.ink));
      const int columns = layout.picture + 1;
      const HeadHabitStrength habit = site.habit(pattern, layer);
      const std::string caption =
          layout.picture >= width_for_words ? habit_text(habit) : short_habit(habit);
      names += pad_right(fmt::format("L{}H{}", layer, head), columns);
      captions += pad_right(fit(caption, layout.picture), columns);
    }
    print(screen.ink.bold(names) + "\n");
    for (std::size_t line = 0; line < pictures.front().lines.size(); ++line) {
      std::string row(label_columns, ' ');
      for (const Picture& picture : pictures) {
        row += picture.lines[line] + std::string(layout.picture + 1 - picture.columns, ' ');
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

constexpr std::string_view pictures_legend =
    "One picture per head; L0H1 is head 1 of block 0. Rows are queries, columns are keys.";

std::string_view habits_legend(AttentionScope scope, const Layout& layout) {
  if (scope != AttentionScope::past) {
    return "An encoder: every token attends to all, before and after it. first, last, self, prev, "
           "next: mean weight on that token. duplicate, induction: on other copies of the token, "
           "on the tokens after them. even: how close to uniform attention. peak: mean largest "
           "weight of a row.";
  }
  if (layout.picture < width_for_words) {
    return "Mean weight on the first token (f), on the token itself (s), on the previous one (p), "
           "on earlier copies (d), on the tokens after them (i); how close to uniform attention "
           "(=); mean distance in tokens (←).";
  }
  return "first, self, prev: mean weight on the first token, on the token itself, on the previous "
         "one. duplicate, induction: on earlier copies of the token, on the tokens after them. "
         "even: how close to uniform attention. back: mean distance in tokens.";
}

std::string_view explained_site(AttentionSite site) {
  if (site == encoder_site) return "the source attends to itself, in both directions";
  return site == decoder_site ? "the target attends to its own past"
                              : "the target attends to the source";
}

// The largest weight of a pattern on a token that says something: another one than the query's
// and, in the past, none of those that most heads look at.
struct Pick {
  std::int64_t query = 0;
  std::int64_t key = 0;
  float weight = 0;
};

Pick clearest_pick(View<const float> pattern, AttentionSite site, AttentionScope scope) {
  const auto counts = [&](std::int64_t t, std::int64_t s) {
    if (scope == AttentionScope::other_text) return true;
    if (scope == AttentionScope::both_ways) return s != t;
    return s > 0 && s < (site == only_site ? t - 1 : t);
  };
  Pick best;
  for (std::int64_t t = 0; t < pattern.extent(0); ++t) {
    for (std::int64_t s = 0; s < pattern.extent(1); ++s) {
      if (counts(t, s) && pattern(t, s) > best.weight) best = {t, s, pattern(t, s)};
    }
  }
  return best;
}

// A head, the pick of its pattern and how query and key are called.
struct ListedHead {
  RankedHead head;
  Pick pick;
  std::string query;
  std::string key;
};

void print_table_of_heads(const std::vector<ListedHead>& heads, const Screen& screen) {
  const bool alone = std::ranges::all_of(heads, [](const ListedHead& each) {
    return each.head.site == only_site && each.head.statistics.scope == AttentionScope::past;
  });
  Table table({{"head", Align::left},
               {"mostly", Align::left},
               {alone ? "weight" : "peak", Align::right},
               {alone ? "largest weight" : "largest weight on another token", Align::left}});
  for (const ListedHead& each : heads) {
    const RankedHead& head = each.head;
    const std::string site = head.site == only_site ? "" : std::string(site_name(head.site)) + ".";
    std::string example = screen.ink.quiet("none: the text is too short");
    if (each.pick.weight > 0) {
      example = fmt::format("{} → {}  {}", screen.ink.bold(each.query), screen.ink.bold(each.key),
                            percent(each.pick.weight));
    }
    table.add(
        {screen.ink.paint(fmt::format("{}L{}H{}", site, head.layer, head.head), colour::orange),
         habit_text(strongest_habit(head.statistics)),
         percent(alone ? head.statistics.content_weight : head.statistics.largest), example});
  }
  print(table.text(screen.ink));
}

}  // namespace

void print_head_overview(const AttendedTexts& texts, const std::vector<AttentionSite>& sites,
                         const Screen& screen) {
  const Ink& ink = screen.ink;
  print_texts(texts, screen);
  for (const AttentionSite at : sites) {
    const AttendedSite site = texts.site(at);
    const Layout layout = layout_for(site, screen.width());
    const std::int64_t layers = texts.pass.architecture().of(at.stack).layers;
    const std::int64_t heads = site.attention.query_heads;
    const std::string counts =
        fmt::format("{} of {}\n", counted(layers, "block"), counted(heads, "head"));
    if (texts.is_pair()) {
      print("\n  " + ink.title(site_title(at)) +
            ink.quiet(fmt::format("  {}; {}", explained_site(at), counts)));
    } else {
      print("\n" + ink.title("Attention patterns") +
            ink.quiet(fmt::format("  {}, {}", counted(texts.size(), "token"), counts)));
      print_lines(pictures_legend, screen);
    }
    print("\n");
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      print_layer(texts, at, layer, layout, screen);
    }
  }
  for (const std::string& line : scale_legend(ink)) print("  " + line + "\n");
  print("\n");
  if (!texts.is_pair()) {
    const AttendedSite site = texts.site(only_site);
    return print_lines(habits_legend(site.scope, layout_for(site, screen.width())), screen);
  }
  print_lines(std::string(pictures_legend) +
                  " first, last, self, prev, next: mean weight on that token. duplicate, "
                  "induction: on other copies of the token, on the tokens after them. even: how "
                  "close to uniform attention. peak: mean largest weight of a row. back: mean "
                  "distance in tokens.",
              screen);
  print_lines("--kind cross --layer L --head H shows one head, --word WORD one word.", screen);
}

std::vector<RankedHead> ranked_heads(const AttendedTexts& texts,
                                     const std::vector<AttentionSite>& sites) {
  std::vector<RankedHead> heads = scan_heads(texts.pass, sites).all();
  rank_heads(heads);
  return heads;
}

void print_selective_heads(const AttendedTexts& texts, const std::vector<RankedHead>& heads,
                           std::size_t count, const Screen& screen) {
  std::vector<ListedHead> listed;
  for (const RankedHead& head : std::span(heads).first(std::min(count, heads.size()))) {
    const Pick pick = clearest_pick(texts.pattern(head.site, head.layer, head.head), head.site,
                                    head.statistics.scope);
    if (!texts.is_pair()) {
      listed.push_back(
          {head, pick, texts.label(pick.query, 12), fit(texts.described(pick.key), 26)});
      continue;
    }
    const auto name = [&](PairSide side, std::int64_t position) {
      return fit(visible(named_bytes(texts.bytes(side)[static_cast<std::size_t>(position)])), 14);
    };
    listed.push_back({head, pick, name(texts.query_side(head.site), pick.query),
                      name(texts.key_side(head.site), pick.key)});
  }
  print_table_of_heads(listed, screen);
}

OrderedJson heads_json(const std::vector<RankedHead>& heads, std::size_t top,
                       const std::function<OrderedJson(const RankedHead&)>& pattern_of) {
  OrderedJson list = OrderedJson::array();
  const std::size_t count = top == 0 ? heads.size() : std::min(top, heads.size());
  for (const RankedHead& head : std::span(heads).first(count)) {
    OrderedJson row = head_statistics_json(head);
    if (top == 0) row["pattern"] = pattern_of(head);
    list.push_back(std::move(row));
  }
  return list;
}

}  // namespace heed::cli
