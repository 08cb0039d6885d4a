// A figure as a list of shapes, independent of the file format.
#pragma once

#include <string>
#include <vector>

#include "microscope/figures/palette.h"

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

}  // namespace heed
