// What a terminal or file can show.
#pragma once

#include <string_view>

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

}  // namespace heed::cli
