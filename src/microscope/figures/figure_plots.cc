#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/utf8.h"
#include "microscope/figures/figure_layout.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

using namespace figure_style;

constexpr std::int64_t max_places = 256;  // rows or columns drawn
constexpr std::size_t max_hints = 10000;
constexpr int widest_label = 18;  // columns
constexpr double tick_length = 4;

// The values to draw: all of them, or the one of largest magnitude in each block.
struct Places {
  Tensor<float> values;
  std::int64_t rows_each = 1;
  std::int64_t columns_each = 1;

  std::int64_t rows() const { return values.shape()[0]; }
  std::int64_t columns() const { return values.shape()[1]; }
  float at(std::int64_t row, std::int64_t column) const { return values.view()(row, column); }
};

Places reduce(View<const float> values) {
  const auto each = [](std::int64_t size) { return (size + max_places - 1) / max_places; };
  Places places{.rows_each = each(values.extent(0)), .columns_each = each(values.extent(1))};
  const std::int64_t rows = (values.extent(0) + places.rows_each - 1) / places.rows_each;
  const std::int64_t columns = (values.extent(1) + places.columns_each - 1) / places.columns_each;
  places.values = Tensor<float>(Shape{rows, columns});
  places.values.fill(NAN);
  for (std::int64_t r = 0; r < values.extent(0); ++r) {
    for (std::int64_t c = 0; c < values.extent(1); ++c) {
      float& place = places.values.view()(r / places.rows_each, c / places.columns_each);
      const float value = values(r, c);
      if (std::isfinite(value) && !(std::abs(place) >= std::abs(value))) place = value;
    }
  }
  return places;
}

// Maps values to colours.
class ColourScale {
 public:
  ColourScale(FigureScale kind, const Places& places) : kind_(kind) {
    if (kind == FigureScale::share) return;
    low_ = high_ = 0;
    for (const float value : places.values.span()) {
      if (!std::isfinite(value)) continue;
      low_ = std::min<double>(low_, value);
      high_ = std::max<double>(high_, value);
    }
    if (kind == FigureScale::diverging) low_ = -(high_ = std::max({-low_, high_, 1e-12}));
    if (high_ <= low_) high_ = low_ + 1;
  }

  double low() const { return low_; }
  double high() const { return high_; }

  // The position of a value on the scale, from 0 to 1, and its inverse.
  double place(double value) const {
    const double place = std::clamp((value - low_) / (high_ - low_), 0.0, 1.0);
    return kind_ == FigureScale::share ? std::sqrt(place) : place;
  }
  double value(double place) const {
    return low_ + (high_ - low_) * (kind_ == FigureScale::share ? place * place : place);
  }
  Rgb colour(double value) const {
    const double where = place(value);
    return kind_ == FigureScale::diverging ? paper_diverging_colour(2 * where - 1)
                                           : paper_sequential_colour(where);
  }
  std::vector<double> ticks() const {
    if (kind_ == FigureScale::share) return {0, 0.02, 0.1, 0.25, 0.5, 1};
    return round_ticks(low_, high_, 6);
  }

 private:
  FigureScale kind_;
  double low_ = 0;
  double high_ = 1;
};

struct Layout {
  double left = 0;  // of the cells
  double top = 0;
  double cell_width = 0;
  double cell_height = 0;
  double right = 0;
  double bottom = 0;
};

std::vector<std::string> cut_labels(const std::vector<std::string>& labels, std::int64_t each) {
  std::vector<std::string> cut;
  for (std::size_t i = 0; i < labels.size(); i += static_cast<std::size_t>(each)) {
    cut.push_back(truncated(printable(labels[i]), widest_label));
  }
  return cut;
}

double widest(const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, text_width(label, label_size));
  return width;
}

// Cells wide enough for their texts; without texts, square and as large as a page allows.
void choose_cells(const HeatMapFigure& map, const Places& places, Layout& layout) {
  if (!map.cell_texts.empty()) {
    const double room = std::clamp(1200.0 / static_cast<double>(places.columns()), 46.0, 92.0);
    layout.cell_width = std::clamp(widest(cut_labels(map.cell_texts, 1)) + 8, 40.0, room);
    layout.cell_height = 18;
    return;
  }
  const auto side = [](std::int64_t count) {
    return std::clamp(620.0 / static_cast<double>(count), 2.5, 30.0);
  };
  layout.cell_width = layout.cell_height = std::min(side(places.columns()), side(places.rows()));
  // Maps with few columns and many rows, or the reverse, use oblong cells.
  layout.cell_width = std::max(layout.cell_width, std::min(side(places.columns()), 24.0));
  layout.cell_height = std::max(layout.cell_height, std::min(side(places.rows()), 16.0));
}

void add_cells(const HeatMapFigure& map, const Places& places, const ColourScale& scale,
               const Layout& layout, Drawing& drawing) {
  const bool hints = static_cast<std::size_t>(places.values.size()) <= max_hints;
  for (std::int64_t r = 0; r < places.rows(); ++r) {
    for (std::int64_t c = 0; c < places.columns(); ++c) {
      const float value = places.at(r, c);
      if (!std::isfinite(value)) continue;
      DrawnRectangle cell{.x = layout.left + static_cast<double>(c) * layout.cell_width,
                          .y = layout.top + static_cast<double>(r) * layout.cell_height,
                          .width = layout.cell_width,
                          .height = layout.cell_height,
                          .fill = scale.colour(value)};
      const std::string text =
          map.cell_texts.empty() ? "" : printable(map.cell_texts[r * places.columns() + c]);
      if (!text.empty()) {
        const int room = static_cast<int>((cell.width - 4) / (label_size * column_width));
        drawing.texts.push_back({.x = cell.x + cell.width / 2,
                                 .y = cell.y + cell.height / 2 + 3.5,
                                 .text = truncated(text, room),
                                 .size = label_size,
                                 .anchor = TextAnchor::middle,
                                 .colour = text_on(cell.fill)});
      }
      if (hints) {
        cell.hint = fmt::format("{} {}, {} {}: {}{}{}", map.row_axis,
                                printable(map.row_labels[r * places.rows_each]), map.column_axis,
                                printable(map.column_labels[c * places.columns_each]), text,
                                text.empty() ? "" : " ", tick_text(value));
      }
      drawing.rectangles.push_back(std::move(cell));
    }
  }
}

void add_row_labels(const std::vector<std::string>& labels, const Layout& layout,
                    Drawing& drawing) {
  const auto every = static_cast<std::size_t>(std::ceil(11.0 / layout.cell_height));
  for (std::size_t r = 0; r < labels.size(); r += every) {
    drawing.texts.push_back(
        {.x = layout.left - 6,
         .y = layout.top + (static_cast<double>(r) + 0.5) * layout.cell_height + 3.5,
         .text = labels[r],
         .size = label_size,
         .anchor = TextAnchor::end,
         .colour = ink});
  }
}

void add_column_labels(const std::vector<std::string>& labels, const Layout& layout, bool upright,
                       Drawing& drawing) {
  const double needed = upright ? widest(labels) + 6 : 11.0;
  const auto every = static_cast<std::size_t>(std::ceil(needed / layout.cell_width));
  for (std::size_t c = 0; c < labels.size(); c += every) {
    const double middle = layout.left + (static_cast<double>(c) + 0.5) * layout.cell_width;
    drawing.texts.push_back({.x = upright ? middle : middle + 3.5,
                             .y = layout.top - 6,
                             .text = labels[c],
                             .size = label_size,
                             .anchor = upright ? TextAnchor::middle : TextAnchor::start,
                             .angle = upright ? 0.0 : -90.0,
                             .colour = ink});
  }
}

void add_frame(const Layout& layout, Drawing& drawing) {
  const auto line = [&](double x1, double y1, double x2, double y2) {
    drawing.lines.push_back({x1, y1, x2, y2, rule});
  };
  line(layout.left, layout.top, layout.right, layout.top);
  line(layout.left, layout.bottom, layout.right, layout.bottom);
  line(layout.left, layout.top, layout.left, layout.bottom);
  line(layout.right, layout.top, layout.right, layout.bottom);
}

// Draws the colour scale with its ticks; returns its right edge.
double add_scale(const HeatMapFigure& map, const ColourScale& scale, const Layout& layout,
                 Drawing& drawing) {
  constexpr int steps = 64;
  constexpr double width = 12;
  const double x = layout.right + 22;
  const double height = std::clamp(layout.bottom - layout.top, 110.0, 220.0);
  for (int i = 0; i < steps; ++i) {
    drawing.rectangles.push_back({.x = x,
                                  .y = layout.top + height * (steps - 1 - i) / steps,
                                  .width = width,
                                  .height = height / steps + 0.3,
                                  .fill = scale.colour(scale.value((i + 0.5) / steps))});
  }
  double reach = x + width;
  double last_y = 1e9;
  for (const double tick : scale.ticks()) {
    const double y = layout.top + height * (1 - scale.place(tick));
    if (last_y - y < 10) continue;
    last_y = y;
    const bool zero = tick == 0 && map.scale == FigureScale::diverging;
    drawing.lines.push_back({zero ? x - tick_length : x + width, y, x + width + tick_length, y,
                             zero ? ink : rule, zero ? 1.25 : 0.75});
    const std::string text = tick_text(tick);
    drawing.texts.push_back({.x = x + width + tick_length + 3,
                             .y = y + 3.5,
                             .text = text,
                             .size = label_size,
                             .colour = zero ? ink : quiet,
                             .bold = zero});
    reach = std::max(reach, x + width + tick_length + 3 + text_width(text, label_size));
  }
  const std::string name = printable(map.value_name);
  drawing.texts.push_back(
      {.x = x, .y = layout.top + height + 16, .text = name, .size = label_size, .colour = quiet});
  return std::max(reach, x + text_width(name, label_size));
}

void require_labels(const HeatMapFigure& map) {
  const Shape& shape = map.values.shape();
  require(shape.rank() == 2 && shape.size() > 0, ErrorCode::invalid_argument,
          "a heat map has the shape {}, expected rows and columns", shape.text());
  require(std::ssize(map.row_labels) == shape[0] && std::ssize(map.column_labels) == shape[1] &&
              (map.cell_texts.empty() || std::ssize(map.cell_texts) == shape.size()),
          ErrorCode::invalid_argument,
          "{} row labels, {} column labels and {} cell texts for values of shape {}",
          map.row_labels.size(), map.column_labels.size(), map.cell_texts.size(), shape.text());
}

}  // namespace

Figure draw_heat_map(const HeatMapFigure& map, const FigureText& text) {
  require_labels(map);
  Figure figure{.text = text, .drawing = {}};
  Drawing& drawing = figure.drawing;
  const Places places = reduce(map.values);
  HeatMapFigure shown = map;
  if (places.rows_each > 1 || places.columns_each > 1) {
    figure.text.caption += fmt::format(
        " Reduced: each cell shows the value of largest magnitude among {} rows and {} "
        "columns.",
        places.rows_each, places.columns_each);
    shown.cell_texts.clear();
  }
  const std::vector<std::string> rows = cut_labels(map.row_labels, places.rows_each);
  const std::vector<std::string> columns = cut_labels(map.column_labels, places.columns_each);

  Layout layout;
  choose_cells(shown, places, layout);
  const bool upright =
      widest(columns) + 6 <= layout.cell_width || (widest(columns) <= 18 && layout.cell_width < 11);
  const double title_bottom = add_title(figure.text, drawing);
  layout.left = margin + line_height + widest(rows) + 12;
  layout.top = title_bottom + line_height + (upright ? line_height : widest(columns)) + 8;
  layout.right = layout.left + layout.cell_width * static_cast<double>(places.columns());
  layout.bottom = layout.top + layout.cell_height * static_cast<double>(places.rows());

  const ColourScale scale(map.scale, places);
  add_cells(shown, places, scale, layout, drawing);
  add_frame(layout, drawing);
  add_row_labels(rows, layout, drawing);
  add_column_labels(columns, layout, upright, drawing);
  drawing.texts.push_back({.x = layout.left,
                           .y = title_bottom + 9,
                           .text = printable(map.column_axis) + " →",
                           .size = label_size,
                           .colour = quiet});
  drawing.texts.push_back({.x = margin + 9,
                           .y = layout.top,
                           .text = "← " + printable(map.row_axis),
                           .size = label_size,
                           .anchor = TextAnchor::end,
                           .angle = -90,
                           .colour = quiet});
  const double right = add_scale(map, scale, layout, drawing);
  const double label_height = text_width("← " + map.row_axis, label_size);
  const double scale_bottom =
      layout.top + std::clamp(layout.bottom - layout.top, 110.0, 220.0) + 18;
  finish(figure.text, right, std::max({layout.bottom, scale_bottom, layout.top + label_height}),
         drawing);
  return figure;
}

namespace {

using namespace figure_style;

constexpr double bar_height = 13;
constexpr double bar_gap = 4;
constexpr double plot_width = 420;
constexpr double number_room = 58;  // beside the longest bar, for its value

}  // namespace

Figure draw_bars(const BarFigure& bars, const FigureText& text) {
  require(!bars.values.empty() && bars.labels.size() == bars.values.size(),
          ErrorCode::invalid_argument, "{} labels for {} bars", bars.labels.size(),
          bars.values.size());
  for (const double value : bars.values) {
    require(std::isfinite(value), ErrorCode::invalid_argument,
            "a bar has the value {}, expected a finite number", value);
  }
  Figure figure{.text = text, .drawing = {}};
  Drawing& drawing = figure.drawing;
  const double top = add_title(text, drawing);
  const double low = std::min(0.0, *std::ranges::min_element(bars.values));
  double high = std::max(0.0, *std::ranges::max_element(bars.values));
  if (high <= low) high = low + 1;

  double label_width = 0;
  std::vector<std::string> labels;
  for (const std::string& label : bars.labels) {
    labels.push_back(truncated(printable(label), 32));
    label_width = std::max(label_width, text_width(labels.back(), label_size));
  }
  const double left = margin + label_width + 8 + (low < 0 ? number_room : 0);
  const auto place = [&](double value) { return left + plot_width * (value - low) / (high - low); };
  const double bottom =
      top + (bar_height + bar_gap) * static_cast<double>(bars.values.size()) + bar_gap;

  for (const double tick : round_ticks(low, high, 6)) {
    const bool zero = tick == 0;
    if (!zero) drawing.lines.push_back({place(tick), top, place(tick), bottom, {224, 226, 230}});
    drawing.texts.push_back({.x = place(tick),
                             .y = bottom + line_height,
                             .text = tick_text(tick),
                             .size = label_size,
                             .anchor = TextAnchor::middle,
                             .colour = zero ? ink : quiet,
                             .bold = zero});
  }
  for (std::size_t i = 0; i < bars.values.size(); ++i) {
    const double value = bars.values[i];
    const double y = top + bar_gap + (bar_height + bar_gap) * static_cast<double>(i);
    const std::string number = fmt::format("{}{}", value < 0 ? "" : "+", tick_text(value));
    drawing.rectangles.push_back({.x = std::min(place(0), place(value)),
                                  .y = y,
                                  .width = std::abs(place(value) - place(0)),
                                  .height = bar_height,
                                  .fill = paper_diverging_colour(value < 0 ? -0.8 : 0.8),
                                  .hint = labels[i] + ": " + number});
    drawing.texts.push_back({.x = margin + label_width,
                             .y = y + bar_height - 3,
                             .text = labels[i],
                             .size = label_size,
                             .anchor = TextAnchor::end,
                             .colour = ink});
    drawing.texts.push_back({.x = place(value) + (value < 0 ? -4 : 4),
                             .y = y + bar_height - 3,
                             .text = number,
                             .size = label_size,
                             .anchor = value < 0 ? TextAnchor::end : TextAnchor::start,
                             .colour = quiet});
  }
  drawing.lines.push_back({place(0), top, place(0), bottom, ink, 1.25});
  drawing.texts.push_back({.x = left + plot_width / 2,
                           .y = bottom + 2 * line_height + 2,
                           .text = printable(bars.value_name),
                           .size = label_size,
                           .anchor = TextAnchor::middle,
                           .colour = quiet});
  finish(text, left + plot_width + number_room, bottom + 2 * line_height + 4, drawing);
  return figure;
}

}  // namespace heed
