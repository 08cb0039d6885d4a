#include "cli/patch_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/output.h"
#include "cli/terminal/ink.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr int margin = 16;
constexpr int tallest_column_label = 10;

void print_column_names(const std::vector<std::string>& names, int cell, const Ink& ink) {
  for (const std::string& line : written_downwards(names, tallest_column_label, cell, margin)) {
    print(ink.quiet(line) + "\n");
  }
}

std::string cell_text(double recovered, int width, const Ink& ink) {
  if (std::isnan(recovered)) return std::string(width, ' ');
  const double place = std::clamp(recovered, -1.0, 1.0);
  const double percents = std::round(100 * recovered) + 0.0;  // + 0: no "-0"
  std::string number = width >= 4 ? pad_left(fmt::format("{:.0f}", percents), width - 1) + " "
                                  : std::string(width, ' ');
  if (display_width(number) > width) number = std::string(width, ' ');
  if (ink.has_colours()) {
    const Rgb background = diverging_colour(place);
    return ink.paint(number, text_on(background), background);
  }
  if (width >= 4) return number;
  const char* const marks[] = {"·", "░", "▒", "▓", "█"};
  const auto mark = static_cast<std::size_t>(std::abs(place) * 4.999);
  return repeat(place < -0.2 ? "-" : marks[mark], width);
}

}  // namespace

void print_patch_map(const PatchResult& result, const std::vector<std::string>& row_names,
                     const std::vector<std::string>& column_names, const Terminal& terminal) {
  const Ink ink(terminal);
  const auto columns = static_cast<int>(result.columns);
  const int cell = std::clamp((terminal.width - margin) / std::max(columns, 1), 1, 5);
  if (cell > 1 || columns + margin <= terminal.width) print_column_names(column_names, cell, ink);
  for (std::int64_t row = 0; row < result.rows; ++row) {
    std::string line =
        pad_left(fit(row_names[static_cast<std::size_t>(row)], margin - 2), margin - 1) + " ";
    for (int column = 0; column < columns; ++column) {
      line += cell_text(result.recovered(row, column), cell, ink);
    }
    print(line + "\n");
  }
}

}  // namespace heed::cli
