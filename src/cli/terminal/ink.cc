#include "cli/terminal/ink.h"

#include <fmt/format.h>

namespace heed::cli {

std::string Ink::code(Rgb colour, bool background) const {
  const int kind = background ? 48 : 38;
  if (depth_ == ColourDepth::palette_256) {
    return fmt::format("{};5;{}", kind, nearest_of_256(colour));
  }
  return fmt::format("{};2;{};{};{}", kind, colour.red, colour.green, colour.blue);
}

std::string Ink::wrapped(const std::string& codes, std::string_view text) const {
  if (!has_colours() || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", codes, text);
}

std::string Ink::bold(std::string_view text) const { return wrapped("1", text); }

std::string Ink::title(std::string_view text) const {
  return wrapped("1;" + code(colour::blue, false), text);
}

std::string Ink::quiet(std::string_view text) const { return paint(text, colour::grey); }

std::string Ink::paint(std::string_view text, Rgb foreground) const {
  return wrapped(code(foreground, false), text);
}

std::string Ink::paint(std::string_view text, Rgb foreground, Rgb background) const {
  return wrapped(code(foreground, false) + ";" + code(background, true), text);
}

}  // namespace heed::cli
