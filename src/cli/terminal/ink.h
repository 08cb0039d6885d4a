// Colours text where the terminal has colours.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/terminal/terminal.h"
#include "microscope/figures/palette.h"

namespace heed::cli {

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
  std::string code(Rgb colour, bool background) const;
  std::string wrapped(const std::string& codes, std::string_view text) const;

  ColourDepth depth_;
};

}  // namespace heed::cli
