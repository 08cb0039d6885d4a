// The last stream taken apart, on a terminal, as a document and in files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "cli/lens.h"
#include "cli/output.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr int max_bar = 30;

// The `top` parts of the largest shares, in the order of the pass.
std::vector<std::size_t> strongest(const ResidualParts& residual, std::size_t top) {
  std::vector<std::size_t> chosen(residual.parts.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = i;
  std::ranges::stable_sort(chosen, std::greater{},
                           [&](std::size_t i) { return std::abs(residual.parts[i].share); });
  chosen.resize(std::min(chosen.size(), top));
  std::ranges::sort(chosen);
  return chosen;
}

std::string position_text(const ExplainedText& text, const ResidualParts& residual) {
  return fmt::format("after {} {}", residual.position,
                     text.name(text.tokens[static_cast<std::size_t>(residual.position)]));
}

}  // namespace

void print_residual(const ExplainedText& text, const ResidualParts& residual, std::size_t top) {
  const Ink ink(standard_output());
  const std::vector<std::size_t> shown = strongest(residual, top);
  double largest = 1e-12;
  for (const std::size_t i : shown) largest = std::max(largest, std::abs(residual.parts[i].share));
  Table table({{"part", Align::left},
               {"length", Align::right},
               {"cosine", Align::right},
               {"share", Align::right},
               {"", Align::left}});
  for (const std::size_t i : shown) {
    const ResidualPart& part = residual.parts[i];
    const std::string bar =
        repeat("█", static_cast<int>(std::lround(max_bar * std::abs(part.share) / largest)));
    table.add({part.name, fmt::format("{:.2f}", part.length), fmt::format("{:+.2f}", part.cosine),
               fmt::format("{:+.1f} %", 100 * part.share),
               ink.paint(bar, part.share < 0 ? colour::blue : colour::orange)});
  }
  print("\n" + ink.title("Final residual stream by part") +
        ink.quiet(fmt::format("  {}\n", position_text(text, residual))) + text.changes_line(ink) +
        "\n" + table.text(ink));
  const std::size_t rest = residual.parts.size() - shown.size();
  print(ink.quiet(
      fmt::format("\n  Share: part · stream / ‖stream‖²; all {} parts sum to 100 %{}.\n",
                  residual.parts.size(), rest > 0 ? fmt::format(", {} are not shown", rest) : "")));
}

OrderedJson residual_json(const ResidualParts& residual) {
  OrderedJson parts = OrderedJson::array();
  for (const ResidualPart& part : residual.parts) {
    parts.push_back({{"name", part.name},
                     {"length", json_number(part.length)},
                     {"cosine", json_number(part.cosine)},
                     {"share", json_number(part.share)}});
  }
  return {{"position", residual.position}, {"parts", std::move(parts)}};
}

void write_residual(const std::string& path, const ExplainedText& text,
                    const ResidualParts& residual, std::size_t top) {
  if (path.empty()) return;
  const View<const std::int32_t> tokens(text.tokens.data(), {std::ssize(text.tokens)});
  write_result(
      path, {.text = {.title = "Final residual stream by part, " + position_text(text, residual),
                      .caption = text.caption() +
                                 " part · stream / ‖stream‖² of what was written to the last "
                                 "hook_resid_post; all parts sum to 1."},
             .draw =
                 [&](const FigureText& figure_text) {
                   BarFigure bars{.value_name = "share"};
                   for (const std::size_t i : strongest(residual, top)) {
                     bars.labels.push_back(residual.parts[i].name);
                     bars.values.push_back(residual.parts[i].share);
                   }
                   return draw_bars(bars, figure_text);
                 },
             .arrays = {{"vectors", residual.vectors.view()},
                        {"stream",
                         View<const float>(residual.stream.data(), {std::ssize(residual.stream)})},
                        {"tokens", tokens}}});
}

}  // namespace heed::cli
