// Figures of what the microscope sees: drawn once, written as SVG, PNG or a page of HTML.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "microscope/figures/drawing.h"
#include "tensor/view.h"

namespace heed {

// What stands with the numbers. Any bytes may come; what is no text is shown escaped.
struct FigureText {
  std::string title;
  std::string caption;  // the model, the text, the point: what a reader needs to make it again
};

enum class FigureScale {
  share,       // from 0 to 1, drawn by its square root, for the small ones matter too
  sequential,  // from 0, or the smallest number where it is below, to the largest
  diverging,   // both ways from a marked zero, equally far
};

// Numbers (rows, columns); one that is not finite leaves its place blank.
struct HeatMapFigure {
  View<const float> values;
  std::vector<std::string> row_labels;     // one a row
  std::vector<std::string> column_labels;  // one a column
  std::string row_axis;                    // what rows are: "layer"
  std::string column_axis;
  std::string value_name;  // beside the colour scale: "attention"
  FigureScale scale = FigureScale::sequential;
  std::vector<std::string> cell_texts{};  // row by row; empty: cells are colours alone
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

// A map of more than 256 rows or columns is reduced, each place showing the number of the largest
// magnitude that it covers; its caption says so. Throws Error{invalid_argument} for labels that do
// not fit the numbers, or no numbers.
Figure draw_heat_map(const HeatMapFigure& map, const FigureText& text);
Figure draw_bars(const BarFigure& bars, const FigureText& text);

// Whether the extension is .svg, .png or .html.
bool is_figure_file(const std::filesystem::path& path);

// By the extension, as a whole or not at all. SVG keeps text as text; PNG has two pixels a point;
// HTML stands alone, with the figures as SVG and no reference to anything outside. Throws
// Error{invalid_argument} for another extension, Error{input_output} with the system's reason.
void write_figure(const std::filesystem::path& path, const Figure& figure);

// The parts: what write_figure writes.
std::string svg_text(const Figure& figure);
std::string html_text(const Figure& figure);
std::string png_bytes(const Figure& figure);

}  // namespace heed
