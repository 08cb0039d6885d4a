// Heat maps and bar charts, drawn as lists of shapes and written as SVG, PNG or HTML.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "microscope/figures/palette.h"
#include "tensor/view.h"

namespace heed {

// Coordinates in points (1/72 inch) or page pixels from the top left corner.
struct DrawnRectangle {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  Rgb fill{};
  std::string hint{};  // tooltip, in formats that have them
};

struct DrawnLine {
  double x1 = 0;
  double y1 = 0;
  double x2 = 0;
  double y2 = 0;
  Rgb colour{};
  double width = 0.75;
};

enum class TextAnchor { start, middle, end };

struct DrawnText {
  double x = 0;
  double y = 0;  // of the baseline
  std::string text;
  double size = 10;
  TextAnchor anchor = TextAnchor::start;
  double angle = 0;  // degrees clockwise about (x, y)
  Rgb colour{};
  bool bold = false;
};

// Shapes in drawing order: rectangles, lines, texts. All text is monospaced, with columns 0.6 of
// the font size wide.
struct Drawing {
  double width = 0;
  double height = 0;
  std::vector<DrawnRectangle> rectangles;
  std::vector<DrawnLine> lines;
  std::vector<DrawnText> texts;
};

inline constexpr double column_width = 0.602;  // of the size: DejaVu Sans Mono's

// Title and caption. Bytes that are not UTF-8 are shown escaped.
struct FigureText {
  std::string title;
  std::string caption;  // the model, the text and the point: what is needed to reproduce the figure
};

enum class FigureScale {
  share,       // 0 to 1, drawn as its square root to show small values
  sequential,  // from 0, or the smallest value if negative, to the largest
  diverging,   // symmetric about a marked zero
};

// Values (rows, columns); a value that is not finite leaves its cell blank.
struct HeatMapFigure {
  View<const float> values;
  std::vector<std::string> row_labels;     // one for each row
  std::vector<std::string> column_labels;  // one for each column
  std::string row_axis;                    // title of the row axis: "layer"
  std::string column_axis;
  std::string value_name;  // beside the colour scale: "attention"
  FigureScale scale = FigureScale::sequential;
  std::vector<std::string> cell_texts{};  // row by row; empty: no texts
};

struct BarFigure {
  std::vector<std::string> labels;
  std::vector<double> values;  // any sign; the zero line is marked
  std::string value_name;      // under the axis: "logits"
};

struct Figure {
  FigureText text;
  Drawing drawing;
};

// A map with more than 256 rows or columns is reduced: each cell shows the value of largest
// magnitude that it covers, and the caption says so. Throws Error{invalid_argument} for no values
// or a wrong number of labels.
Figure draw_heat_map(const HeatMapFigure& map, const FigureText& text);
Figure draw_bars(const BarFigure& bars, const FigureText& text);

// Whether the extension is .svg, .png or .html.
bool is_figure_file(const std::filesystem::path& path);

// Writes the format of the extension, atomically. SVG keeps text as text; PNG has two pixels per
// point; HTML is self-contained, with the figures as inline SVG. Throws
// Error{invalid_argument} for another extension, Error{input_output} with the system's reason.
void write_figure(const std::filesystem::path& path, const Figure& figure);

// The contents of the files that write_figure writes.
std::string svg_text(const Figure& figure);
std::string html_text(const Figure& figure);
std::string png_bytes(const Figure& figure);

}  // namespace heed
