#include "microscope/figures/figure_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace heed {

using namespace figure_style;

int text_columns(std::string_view text) {
  int columns = 0;
  for (std::size_t i = 0; i < text.size(); i += read_utf8(text, i).length) ++columns;
  return columns;
}

double text_width(std::string_view text, double size) {
  return text_columns(text) * size * column_width;
}

std::string truncated(const std::string& text, int columns) {
  if (text_columns(text) <= columns) return text;
  std::string cut;
  std::size_t i = 0;
  for (int column = 0; column + 1 < columns; ++column) {
    const std::size_t length = read_utf8(text, i).length;
    cut += text.substr(i, length);
    i += length;
  }
  return cut + "…";
}

std::string tick_text(double value) {
  const std::string text = fmt::format("{:.4g}", value);
  return text == "-0" ? "0" : text;
}

std::vector<double> round_ticks(double low, double high, int count) {
  const double range = std::max(high - low, 1e-30);
  const double rough = range / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (double tick = std::ceil(low / step - 1e-9); tick * step <= high + 1e-9 * range; tick += 1) {
    ticks.push_back(tick * step);
  }
  return ticks;
}

namespace {

std::vector<std::string> wrapped(const std::string& text, int columns) {
  std::vector<std::string> lines(1);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    while (text_columns(word) > columns) {  // no space to break at: cut at the end of the line
      std::size_t cut = 0;
      for (int i = 0; i < columns; ++i) cut += read_utf8(word, cut).length;
      if (!lines.back().empty()) lines.emplace_back();
      lines.back() = word.substr(0, cut);
      word.erase(0, cut);
    }
    if (!lines.back().empty() && text_columns(lines.back()) + 1 + text_columns(word) > columns) {
      lines.emplace_back();
    }
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

}  // namespace

double add_title(const FigureText& text, Drawing& drawing) {
  if (text.title.empty()) return margin;
  drawing.texts.push_back({.x = margin,
                           .y = margin + title_size,
                           .text = printable(text.title),
                           .size = title_size,
                           .colour = ink,
                           .bold = true});
  return margin + title_size + 14;
}

void finish(const FigureText& text, double right, double bottom, Drawing& drawing) {
  const double title_width = text_width(printable(text.title), title_size);
  drawing.width = std::max({right, margin + title_width, 420.0}) + margin;
  const double room = drawing.width - 2 * margin;
  double y = bottom + 8;
  if (!text.caption.empty()) {
    const int columns = static_cast<int>(room / (label_size * column_width));
    for (const std::string& line : wrapped(printable(text.caption), columns)) {
      y += line_height;
      drawing.texts.push_back(
          {.x = margin, .y = y, .text = line, .size = label_size, .colour = quiet});
    }
  }
  drawing.height = y + margin;
}

}  // namespace heed
