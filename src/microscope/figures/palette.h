// Colours of terminal output and figures.
//
// Text colours have a relative luminance of about 0.18, for a contrast of about 4.5 : 1 on black
// and on white. Scales have linearly increasing OKLab lightness, so that they remain ordered in
// greyscale and for colour-blind readers.
#pragma once

#include <array>
#include <cstdint>

namespace heed {

struct Rgb {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  bool operator==(const Rgb&) const = default;
};

namespace colour {
inline constexpr Rgb blue{63, 120, 216};
inline constexpr Rgb orange{194, 87, 26};
inline constexpr Rgb green{31, 138, 112};
inline constexpr Rgb grey{118, 118, 118};

// Alternating backgrounds of neighbouring tokens, for black text.
inline constexpr std::array<Rgb, 2> token_backgrounds{{{214, 228, 255}, {255, 226, 201}}};
}  // namespace colour

// value in [0, 1]: dark violet through blue and green to light yellow.
Rgb sequential_colour(double value);

// value in [-1, 1]: blue through grey to orange.
Rgb diverging_colour(double value);

// The same for white backgrounds: value in [0, 1] from nearly white through green to dark blue, and
// in [-1, 1] from blue through nearly white to dark orange. Zero is the lightest.
Rgb paper_sequential_colour(double value);
Rgb paper_diverging_colour(double value);

// Black or white, whichever has the higher contrast with `background`.
Rgb text_on(Rgb background);

// The nearest of the 256-colour palette's cube and greys.
int nearest_of_256(Rgb colour);

}  // namespace heed
