// What a terminal or file can show, and text in colours.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "microscope/figures/palette.h"

namespace heed::cli {

enum class ColourDepth { none, palette_256, true_colour };

struct Terminal {
  bool interactive = false;  // a terminal: live lines make sense
  ColourDepth colours = ColourDepth::none;
  int width = 80;  // columns; 80 where unknown

  bool has_colours() const { return colours != ColourDepth::none; }
};

// Detected once per call from the file descriptor, TERM, COLORTERM, COLUMNS and NO_COLOR.
Terminal standard_output();
Terminal standard_error();

// "auto", "always" or "never", from --color; overrides NO_COLOR.
void set_colour_choice(std::string_view choice);

// Colours text where the terminal has colours.
class Ink {
 public:
  explicit Ink(const Terminal& terminal) : depth_(terminal.colours) {}

  bool has_colours() const { return depth_ != ColourDepth::none; }

  std::string bold(std::string_view text) const;
  std::string title(std::string_view text) const;  // a heading
  std::string quiet(std::string_view text) const;  // secondary text
  std::string paint(std::string_view text, Rgb foreground) const;
  std::string paint(std::string_view text, Rgb foreground, Rgb background) const;

 private:
  enum class Ground { fore, back };
  std::string code(Rgb colour, Ground ground) const;
  std::string wrapped(const std::string& codes, std::string_view text) const;

  ColourDepth depth_;
};

}  // namespace heed::cli
