// Layout common to all figures: title, caption, axis ticks.
#pragma once

#include <string>
#include <vector>

#include "microscope/figures/figure.h"

namespace heed {

namespace figure_style {
inline constexpr Rgb ink{32, 33, 36};
inline constexpr Rgb quiet{95, 99, 104};
inline constexpr Rgb rule{176, 180, 186};
inline constexpr double margin = 18;
inline constexpr double label_size = 10;
inline constexpr double title_size = 14;
inline constexpr double line_height = 13;
}  // namespace figure_style

// The columns of a monospaced text, and its width.
int text_columns(std::string_view text);
double text_width(std::string_view text, double size);

// The text cut to `columns`, with … at the end if it was cut.
std::string truncated(const std::string& text, int columns);

// A number in few digits: 12, 0.25, -3.1e-05.
std::string tick_text(double value);

// About `count` round numbers from low to high, including zero if it lies between.
std::vector<double> round_ticks(double low, double high, int count);

// add_title() draws the title and returns the y coordinate below it; finish() draws the caption
// below `bottom` and sets the size of the drawing.
double add_title(const FigureText& text, Drawing& drawing);
void finish(const FigureText& text, double right, double bottom, Drawing& drawing);

}  // namespace heed
