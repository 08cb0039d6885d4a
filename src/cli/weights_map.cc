#include "cli/weights_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output.h"
#include "cli/terminal/heat_map.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr int widest_query = 12;
constexpr int tallest_key = 10;
constexpr int query_number_width = 4;
constexpr int max_width = 22;  // "→ ␣creature 42 %" after a row
constexpr int widest_reduced_map = 160;

class Drawing {
 public:
  Drawing(const WeightsMap& map, const Screen& screen)
      : map_(map),
        screen_(screen),
        rows_(static_cast<int>(map.queries.size())),
        columns_(static_cast<int>(map.keys.size())) {
    for (int row = 0; row < rows_; ++row) {
      query_width_ = std::max(query_width_, display_width(query(row, widest_query)));
    }
  }

  int margin() const { return 2 + query_number_width + query_width_ + 1; }
  int room() const { return screen_.width() - margin(); }
  int columns() const { return columns_; }

  void print_cells() const {
    const int cell = 2 * columns_ <= room() ? 2 : 1;
    const bool has_notes = cell * columns_ + max_width <= room();
    std::vector<std::string> names;
    for (const std::string& key : map_.keys) names.push_back(visible(key));
    for (const std::string& line : written_downwards(names, tallest_key, cell, margin())) {
      print(screen_.ink.quiet(line) + "\n");
    }
    for (int row = 0; row < rows_; ++row) {
      std::string line = "  " +
                         screen_.ink.quiet(pad_left(std::to_string(row), query_number_width - 1)) +
                         " " + pad_left(query(row, query_width_), query_width_) + " ";
      for (int column = 0; column < columns_; ++column) {
        line += heat_cell(share(row, column), cell, screen_.ink);
      }
      if (has_notes) line += largest(row);
      print(line + "\n");
    }
  }

  // For texts with more keys than columns: neighbours share a cell.
  void print_reduced() const {
    const Picture picture = half_block_picture(
        {rows_, columns_}, std::min(screen_.width() - 2, widest_reduced_map),
        [this](int row, int column) { return share(row, column); }, screen_.ink);
    for (const std::string& line : picture.lines) print("  " + line + "\n");
    print(screen_.ink.quiet(fmt::format(
        "  {} rows of {} in {} columns: a cell shows the largest weight that it covers.\n", rows_,
        columns_, picture.columns)));
  }

 private:
  double share(int row, int column) const {
    return map_.is_causal && column > row ? -1.0 : double{map_.weights(row, column)};
  }
  std::string query(int row, int width) const {
    return fit(visible(map_.queries[static_cast<std::size_t>(row)]), width);
  }
  std::string largest(int row) const {
    int best = 0;
    for (int column = 1; column < columns_; ++column) {
      if (share(row, column) > share(row, best)) best = column;
    }
    return fmt::format(" → {} {}",
                       fit(visible(map_.keys[static_cast<std::size_t>(best)]), max_width - 9),
                       screen_.ink.quiet(percent(share(row, best))));
  }

  const WeightsMap& map_;
  const Screen& screen_;
  int rows_;
  int columns_;
  int query_width_ = 0;
};

}  // namespace

void print_weights_map(const WeightsMap& map, const Screen& screen) {
  const Drawing drawing(map, screen);
  if (drawing.columns() > drawing.room()) {
    drawing.print_reduced();
  } else {
    drawing.print_cells();
  }
  print("\n");
  const int indent = std::min(drawing.margin(), 18);
  for (const std::string& line : scale_legend(screen.ink)) {
    print(std::string(static_cast<std::size_t>(indent), ' ') + line + "\n");
  }
}

}  // namespace heed::cli
