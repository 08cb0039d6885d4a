// Colours chosen for meaning and for every background.
//
// Text colours have a relative luminance of about 0.18, so that their contrast is near 4.5 : 1 with
// black and with white alike. Scales run through OKLab with evenly growing lightness, so that more
// always looks like more, also to colour-blind eyes and in grey.
#pragma once

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
inline constexpr Rgb violet{154, 95, 192};
inline constexpr Rgb grey{118, 118, 118};
}  // namespace colour

// value in [0, 1]: dark violet over blue and green to light yellow.
Rgb sequential_colour(double value);

// value in [-1, 1]: blue over a middle grey to orange.
Rgb diverging_colour(double value);

// The same for paper, whose ground is white: value in [0, 1] from nearly white over green to dark
// blue, and in [-1, 1] from blue over nearly white to dark orange. Zero is the lightest.
Rgb paper_sequential_colour(double value);
Rgb paper_diverging_colour(double value);

// Black or white, whichever reads better on `background`.
Rgb text_on(Rgb background);

// The nearest of the 256-colour palette's cube and greys.
int nearest_of_256(Rgb colour);

}  // namespace heed
