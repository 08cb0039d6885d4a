// Shares of one, such as attention weights, as a picture of characters.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"

namespace heed::cli {

// A share in [0, 1], or negative for a cell that does not exist and stays blank.
using ShareAt = std::function<double(int row, int column)>;

// The position of a share on the colour scale: its square root, so that small shares are visible.
double scale_place(double share);

// A rectangle of shares as a picture in at most `columns` columns and half as many lines, for a
// line shows two rows. A large picture is reduced, each cell showing the largest share that it
// covers; a small one is enlarged by a whole factor, in both directions alike.
struct Picture {
  int columns = 0;
  std::vector<std::string> lines;
};
struct PictureSize {
  int rows = 0;
  int columns = 0;
};
Picture half_block_picture(const PictureSize& size, int columns, const ShareAt& share,
                           const Ink& ink);

// One share as a cell of `width` columns.
std::string heat_cell(double share, int width, const Ink& ink);

// The colour scale with the shares at which its colours stand, in one or two lines.
std::vector<std::string> scale_legend(const Ink& ink);

// Positive and negative numbers as a strip of colours, one column each; empty without colours.
std::string signed_strip(const std::vector<float>& values, int columns, const Ink& ink);

}  // namespace heed::cli
