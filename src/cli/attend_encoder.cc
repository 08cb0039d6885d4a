// The heads of an encoder, which attend before and after a token, in the order of how much they
// select.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "cli/output.h"
#include "cli/pair_attend.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "engine/pair_json.h"
#include "engine/views/report_json.h"

namespace heed::cli {
namespace {

std::vector<PairHeadStatistics> encoder_heads(const AttendedText& text, std::size_t count) {
  std::vector<PairHeadStatistics> heads;
  const StackSpecification& config = text.model.gpt.specification();
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (std::int64_t head = 0; head < config.heads(); ++head) {
      heads.push_back(pair_head_statistics(text.pattern(layer, head), encoder_site));
      heads.back().layer = layer;
      heads.back().head = head;
    }
  }
  std::ranges::stable_sort(heads, std::greater{}, &PairHeadStatistics::largest);
  if (count > 0) heads.resize(std::min(count, heads.size()));
  return heads;
}

// The largest weight on another token.
std::string largest_weight(const AttendedText& text, View<const float> pattern,
                           const Screen& screen) {
  int query = 0, key = 0;
  float weight = 0;
  for (int t = 0; t < text.size(); ++t) {
    for (int s = 0; s < text.size(); ++s) {
      if (s == t || pattern(t, s) <= weight) continue;
      query = t, key = s, weight = pattern(t, s);
    }
  }
  if (weight == 0) return screen.ink.quiet("none: the text is one token");
  return fmt::format("{} → {}  {}", screen.ink.bold(text.label(query, 12)),
                     screen.ink.bold(fit(text.described(key), 26)), percent(weight));
}

}  // namespace

void print_encoder_heads(const AttendedText& text, std::size_t count, const Screen& screen) {
  print("\n" + screen.ink.title("Most selective heads") +
        screen.ink.quiet("  peak: mean largest weight of a row\n\n"));
  Table table({{"head", Align::left},
               {"mostly", Align::left},
               {"peak", Align::right},
               {"largest weight on another token", Align::left}});
  for (const PairHeadStatistics& head : encoder_heads(text, count)) {
    table.add({screen.ink.paint(fmt::format("L{}H{}", head.layer, head.head), colour::orange),
               habit_text(strongest_habit(head)), percent(head.largest),
               largest_weight(text, text.pattern(head.layer, head.head), screen)});
  }
  print(table.text(screen.ink));
}

OrderedJson encoder_heads_json(const AttendedText& text, std::size_t count) {
  OrderedJson heads = OrderedJson::array();
  for (const PairHeadStatistics& head : encoder_heads(text, count)) {
    OrderedJson row = pair_statistics_json(head);
    if (count == 0) row["pattern"] = pattern_json(text.pattern(head.layer, head.head));
    heads.push_back(std::move(row));
  }
  return heads;
}

}  // namespace heed::cli
