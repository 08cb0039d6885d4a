#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/utf8.h"
#include "microscope/figures/figure_layout.h"

namespace heed {
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
