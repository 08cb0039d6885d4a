#include "microscope/figures/palette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

namespace heed {
namespace {

double to_linear(std::uint8_t channel) {
  const double value = channel / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

std::uint8_t from_linear(double value) {
  value = std::clamp(value, 0.0, 1.0);
  const double encoded =
      value <= 0.0031308 ? 12.92 * value : 1.055 * std::pow(value, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * encoded));
}

// Lightness, chroma and hue (degrees) of OKLab (Ottosson 2020).
struct Lch {
  double lightness;
  double chroma;
  double hue;
};

Rgb to_rgb(const Lch& lch) {
  const double angle = lch.hue * std::numbers::pi / 180;
  const double a = lch.chroma * std::cos(angle);
  const double b = lch.chroma * std::sin(angle);
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(lch.lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lch.lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lch.lightness - 0.0894841775 * a - 1.2914855480 * b);
  return {from_linear(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          from_linear(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          from_linear(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

template <std::size_t Count>
Lch between(const std::array<Lch, Count>& stops, double value) {
  const double place = std::clamp(value, 0.0, 1.0) * (Count - 1);
  const auto first = std::min(static_cast<std::size_t>(place), Count - 2);
  const double part = place - static_cast<double>(first);
  const Lch& low = stops[first];
  const Lch& high = stops[first + 1];
  const auto mix = [part](double from, double to) { return from + part * (to - from); };
  return {mix(low.lightness, high.lightness), mix(low.chroma, high.chroma), mix(low.hue, high.hue)};
}

// Equal steps of lightness; the chroma is limited by the sRGB gamut.
constexpr std::array<Lch, 5> sequential{{{0.24, 0.09, 310},
                                         {0.41, 0.10, 280},
                                         {0.58, 0.10, 210},
                                         {0.75, 0.14, 155},
                                         {0.92, 0.17, 105}}};

constexpr std::array<Lch, 5> paper_sequential{{{0.985, 0.015, 110},
                                               {0.87, 0.09, 140},
                                               {0.70, 0.10, 190},
                                               {0.50, 0.12, 245},
                                               {0.30, 0.12, 275}}};

struct Diverging {
  Lch middle;
  Lch negative;
  Lch positive;
};

constexpr Diverging diverging{
    .middle = {0.62, 0.0, 0}, .negative = {0.45, 0.17, 262}, .positive = {0.76, 0.16, 60}};

constexpr Diverging paper_diverging{
    .middle = {0.975, 0.0, 0}, .negative = {0.42, 0.17, 262}, .positive = {0.50, 0.14, 45}};

Rgb along(const Diverging& scale, double value) {
  const double strength = std::min(std::abs(value), 1.0);
  const Lch& end = value < 0 ? scale.negative : scale.positive;
  return to_rgb({scale.middle.lightness + strength * (end.lightness - scale.middle.lightness),
                 strength * end.chroma, end.hue});
}

double luminance(Rgb colour) {
  return 0.2126 * to_linear(colour.red) + 0.7152 * to_linear(colour.green) +
         0.0722 * to_linear(colour.blue);
}

int distance(Rgb a, Rgb b) {
  const auto square = [](int x) { return x * x; };
  return square(a.red - b.red) + square(a.green - b.green) + square(a.blue - b.blue);
}

// Colours 16 to 231 are a 6×6×6 cube of these steps, 232 to 255 are greys 8, 18, ..., 238.
constexpr std::array<int, 6> cube_steps{0, 95, 135, 175, 215, 255};

Rgb colour_of_256(int index) {
  if (index >= 232) {
    const auto grey = static_cast<std::uint8_t>(8 + 10 * (index - 232));
    return {grey, grey, grey};
  }
  index -= 16;
  const auto step = [](int i) { return static_cast<std::uint8_t>(cube_steps[i]); };
  return {step(index / 36), step(index / 6 % 6), step(index % 6)};
}

}  // namespace

Rgb sequential_colour(double value) { return to_rgb(between(sequential, value)); }
Rgb paper_sequential_colour(double value) { return to_rgb(between(paper_sequential, value)); }

Rgb diverging_colour(double value) { return along(diverging, value); }
Rgb paper_diverging_colour(double value) { return along(paper_diverging, value); }

Rgb text_on(Rgb background) {
  // Contrast with black and white is equal at a luminance of √(1.05·0.05) − 0.05.
  return luminance(background) > 0.179 ? Rgb{0, 0, 0} : Rgb{255, 255, 255};
}

int nearest_of_256(Rgb colour) {
  int best = 16;
  int best_distance = std::numeric_limits<int>::max();
  for (int index = 16; index < 256; ++index) {
    const int candidate = distance(colour, colour_of_256(index));
    if (candidate < best_distance) {
      best = index;
      best_distance = candidate;
    }
  }
  return best;
}

}  // namespace heed
