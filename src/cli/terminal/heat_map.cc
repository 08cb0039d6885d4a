#include "cli/terminal/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr std::array<const char*, 5> shades{"·", "░", "▒", "▓", "█"};

const char* shade(double share) {
  const auto place = static_cast<std::size_t>(scale_place(share) * shades.size());
  return shades[std::min(place, shades.size() - 1)];
}

// Two places above each other: the upper one is the character's ink, the lower one its paper.
std::string half_block(double upper, double lower, const Ink& ink) {
  if (!ink.has_colours()) {
    const double share = std::max(upper, lower);
    return share < 0 ? " " : shade(share);
  }
  const auto colour = [](double share) { return sequential_colour(scale_place(share)); };
  if (upper < 0 && lower < 0) return " ";
  if (upper < 0) return ink.paint("▄", colour(lower));
  if (lower < 0) return ink.paint("▀", colour(upper));
  return ink.paint("▀", colour(upper), colour(lower));
}

}  // namespace

double scale_place(double share) { return std::sqrt(std::clamp(share, 0.0, 1.0)); }

Picture half_block_picture(const PictureSize& size, int columns, const ShareAt& share,
                           const Ink& ink) {
  const int factor = std::max(1, columns / std::max({size.rows, size.columns, 1}));
  const int height = std::min(columns, size.rows * factor);
  const int width = std::min(columns, size.columns * factor);
  const auto largest = [&](int row, int column) {
    double best = -1;
    if (row >= height) return best;
    const int first_row = row * size.rows / height, first_column = column * size.columns / width;
    const int end_row = std::max((row + 1) * size.rows / height, first_row + 1);
    const int end_column = std::max((column + 1) * size.columns / width, first_column + 1);
    for (int r = first_row; r < end_row; ++r) {
      for (int c = first_column; c < end_column; ++c) best = std::max(best, share(r, c));
    }
    return best;
  };
  Picture picture{.columns = width, .lines = {}};
  for (int row = 0; row < height; row += 2) {
    std::string line;
    for (int column = 0; column < width; ++column) {
      line += half_block(largest(row, column), largest(row + 1, column), ink);
    }
    picture.lines.push_back(std::move(line));
  }
  return picture;
}

std::string heat_cell(double share, int width, const Ink& ink) {
  if (share < 0) return std::string(width, ' ');
  if (!ink.has_colours()) return repeat(shade(share), width);
  const Rgb colour = sequential_colour(scale_place(share));
  return ink.paint(std::string(width, ' '), text_on(colour), colour);
}

std::vector<std::string> scale_legend(const Ink& ink) {
  constexpr int columns = 40;
  constexpr std::array<int, 6> marks{0, 2, 10, 25, 50, 100};
  std::string scale;
  std::string labels;
  if (!ink.has_colours()) {
    return {"· below 4 %   ░ below 16 %   ▒ below 36 %   ▓ below 64 %   █ more"};
  }
  for (int i = 0; i < columns; ++i) {
    const double place = (i + 0.5) / columns;
    scale += heat_cell(place * place, 1, ink);
  }
  for (const int mark : marks) {
    const int column = static_cast<int>(std::lround(scale_place(mark / 100.0) * (columns - 1)));
    labels = pad_right(labels, column) + std::to_string(mark);
  }
  return {scale, ink.quiet(labels + " %")};
}

std::string signed_strip(const std::vector<float>& values, int columns, const Ink& ink) {
  if (!ink.has_colours() || values.empty()) return {};
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  const std::size_t shown = std::min(values.size(), static_cast<std::size_t>(columns));
  std::string strip;
  for (std::size_t i = 0; i < shown; ++i) {
    const double value = largest > 0 ? values[i] / largest : 0.0F;
    strip += ink.paint("█", diverging_colour(value));
  }
  return shown < values.size() ? strip + "…" : strip;
}

}  // namespace heed::cli
