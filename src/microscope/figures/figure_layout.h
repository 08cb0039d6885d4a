// What all figures share: title, caption, numbers on axes.
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

// Columns of a text in a typeface of one width, and the room they take.
int text_columns(std::string_view text);
double text_width(std::string_view text, double size);

// Cut to so many columns, ending in … where something was left out.
std::string truncated(const std::string& text, int columns);

// A number in few digits: 12, 0.25, -3.1e-05.
std::string tick_text(double value);

// About `count` round numbers from low to high; zero is one of them where it lies between.
std::vector<double> round_ticks(double low, double high, int count);

// The title above, where the picture's content begins, and the caption below content that is
// `bottom` deep; both set the drawing's size.
double add_title(const FigureText& text, Drawing& drawing);
void finish(const FigureText& text, double right, double bottom, Drawing& drawing);

}  // namespace heed
