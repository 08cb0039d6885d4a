#include "cli/terminal/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

namespace heed::cli {
namespace {

constexpr int default_width = 80;
constexpr int widest_terminal = 400;

enum class ColourChoice { automatic, always, never };
ColourChoice colour_choice = ColourChoice::automatic;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

ColourDepth depth_of_terminal() {
  const std::string_view colours = environment("COLORTERM");
  if (colours == "truecolor" || colours == "24bit") return ColourDepth::true_colour;
  return ColourDepth::palette_256;
}

ColourDepth detect_colours(bool is_terminal) {
  switch (colour_choice) {
    case ColourChoice::always: return depth_of_terminal();
    case ColourChoice::never: return ColourDepth::none;
    case ColourChoice::automatic: break;
  }
  const bool refused = !environment("NO_COLOR").empty() || environment("TERM") == "dumb";
  return is_terminal && !refused ? depth_of_terminal() : ColourDepth::none;
}

// Columns of the terminal; COLUMNS decides where there is none, so that a pipe can be given a
// width.
int detect_width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::min<int>(size.ws_col, widest_terminal);
  }
  const std::string_view columns = environment("COLUMNS");
  int width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  return width > 0 ? std::clamp(width, 20, widest_terminal) : default_width;
}

Terminal detect(int descriptor) {
  Terminal terminal;
  const bool is_terminal = isatty(descriptor) == 1;
  terminal.interactive = is_terminal && environment("TERM") != "dumb";
  terminal.colours = detect_colours(is_terminal);
  terminal.width = detect_width(descriptor);
  return terminal;
}

}  // namespace

Terminal standard_output() { return detect(STDOUT_FILENO); }
Terminal standard_error() { return detect(STDERR_FILENO); }

void set_colour_choice(std::string_view choice) {
  colour_choice = choice == "always"  ? ColourChoice::always
                  : choice == "never" ? ColourChoice::never
                                      : ColourChoice::automatic;
}

std::string Ink::code(Rgb colour, Ground ground) const {
  const int kind = ground == Ground::back ? 48 : 38;
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
  return wrapped("1;" + code(colour::blue, Ground::fore), text);
}

std::string Ink::quiet(std::string_view text) const { return paint(text, colour::grey); }

std::string Ink::paint(std::string_view text, Rgb foreground) const {
  return wrapped(code(foreground, Ground::fore), text);
}

std::string Ink::paint(std::string_view text, Rgb foreground, Rgb background) const {
  return wrapped(code(foreground, Ground::fore) + ";" + code(background, Ground::back), text);
}

}  // namespace heed::cli
