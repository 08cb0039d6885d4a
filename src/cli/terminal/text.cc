#include "cli/terminal/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"

namespace heed::cli {
namespace {

// Bytes of the escape sequence "ESC [ … letter" at `position`; 0 where there is none.
std::size_t escape_length(std::string_view text, std::size_t position) {
  if (!text.substr(position).starts_with("\x1b[")) return 0;
  std::size_t end = position + 2;
  while (end < text.size() && !(text[end] >= '@' && text[end] <= '~')) ++end;
  return std::min(end + 1, text.size()) - position;
}

int character_width(const Utf8Character& character) {
  if (!character.valid) return 1;
  return std::max(0, utf8proc_charwidth(static_cast<utf8proc_int32_t>(character.code_point)));
}

// Bytes of the longest beginning that takes at most `width` columns.
std::size_t bytes_within(std::string_view text, int width) {
  std::size_t position = 0;
  while (position < text.size()) {
    const Utf8Character character = read_utf8(text, position);
    width -= character_width(character);
    if (width < 0) break;
    position += character.length;
  }
  return position;
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t position = 0; position < text.size();) {
    if (const std::size_t escape = escape_length(text, position)) {
      position += escape;
      continue;
    }
    const Utf8Character character = read_utf8(text, position);
    width += character_width(character);
    position += character.length;
  }
  return width;
}

std::string fit(std::string_view text, int width) {
  if (width <= 0) return {};
  if (display_width(text) <= width) return std::string(text);
  return std::string(text.substr(0, bytes_within(text, width - 1))) + "…";
}

std::string pad_right(std::string_view text, int width) {
  return std::string(text) + std::string(std::max(0, width - display_width(text)), ' ');
}

std::string pad_left(std::string_view text, int width) {
  return std::string(std::max(0, width - display_width(text)), ' ') + std::string(text);
}

std::string repeat(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

std::vector<std::string> written_downwards(const std::vector<std::string>& names, int max_length,
                                           int width, int margin) {
  std::vector<std::vector<std::string>> columns;
  std::size_t height = 0;
  for (const std::string& name : names) {
    const std::string text = fit(name, max_length);
    auto& column = columns.emplace_back();
    for (std::size_t i = 0; i < text.size(); i += column.back().size()) {
      column.push_back(text.substr(i, read_utf8(text, i).length));
    }
    height = std::max(height, column.size());
  }
  std::vector<std::string> lines(height, std::string(static_cast<std::size_t>(margin), ' '));
  for (const auto& column : columns) {
    const std::size_t above = height - column.size();
    for (std::size_t line = 0; line < height; ++line) {
      lines[line] += pad_right(line < above ? " " : column[line - above], width);
    }
  }
  return lines;
}

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::size_t end = bytes_within(text, width);
    const std::size_t newline = text.find('\n');
    if (newline != std::string_view::npos && newline <= end) {
      lines.emplace_back(text.substr(0, newline));
      text.remove_prefix(newline + 1);
      continue;
    }
    if (end < text.size()) {
      const std::size_t space = text.rfind(' ', end);
      if (space != std::string_view::npos && space > 0) end = space;
    }
    // A character wider than the line still has to go somewhere.
    end = std::max<std::size_t>(end, read_utf8(text, 0).length);
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  return lines;
}

std::string printable_lines(std::string_view text) {
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += printable(text.substr(begin, end - begin));
    if (end < text.size()) lines += '\n';
    begin = end + 1;
  }
  return lines;
}

std::string visible(std::string_view bytes) {
  std::string text;
  for (const char character : printable(bytes)) {
    if (character == ' ') {
      text += "␣";
    } else {
      text += character;
    }
  }
  return text;
}

std::string counted(long long number, std::string_view unit) {
  return fmt::format("{} {}{}", grouped(number), unit, number == 1 ? "" : "s");
}

std::string short_count(double number) {
  constexpr std::array<std::pair<double, const char*>, 5> units{
      {{1e15, "P"}, {1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [size, name] : units) {
    if (number >= size) return fmt::format("{:.1f} {}", number / size, name);
  }
  return fmt::format("{:.0f}", number);
}

std::string short_bytes(double bytes) {
  constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

std::string short_number(double number) {
  if (std::isinf(number)) return number < 0 ? "−∞" : "∞";
  const double size = std::abs(number);
  if (size != 0 && (size < 5e-4 || size >= 1e5)) return fmt::format("{:.1e}", number);
  return fmt::format("{:.{}f}", number, size < 10 ? 3 : size < 1000 ? 2 : 1);
}

std::string with_error(double value, std::optional<double> standard_error, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (standard_error) text += fmt::format(" ± {:.{}f}", *standard_error, decimals);
  return text;
}

std::string percent(double share) {
  if (share > 0 && share < 0.001) return "<.1 %";
  return fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 1 : 0);
}

std::string bar(double share, int width) {
  constexpr std::array<const char*, 8> parts{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(share > 0)) return {};
  const int eighths = std::max(1, static_cast<int>(std::lround(std::min(share, 1.0) * width * 8)));
  return repeat("█", eighths / 8) + parts[eighths % 8];
}

}  // namespace heed::cli
