#include "cli/terminal/table.h"

#include <algorithm>

#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr std::string_view table_indent = "  ";
constexpr std::string_view gap = "  ";

std::string without_trailing_spaces(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back({.cells = std::move(cells), .line = {}});
}

void Table::add_line(std::string text) { rows_.push_back({.cells = {}, .line = std::move(text)}); }

std::string Table::text(const Ink& ink) const {
  std::vector<int> widths;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    int width = display_width(columns_[column].title);
    for (const Row& row : rows_) {
      if (!row.cells.empty()) width = std::max(width, display_width(row.cells[column]));
    }
    widths.push_back(width);
  }
  const auto line_of = [&](const auto& cell) {
    std::string line(table_indent);
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      if (column > 0) line += gap;
      line += columns_[column].align == Align::right ? pad_left(cell(column), widths[column])
                                                     : pad_right(cell(column), widths[column]);
    }
    return without_trailing_spaces(line);
  };
  std::string text = ink.quiet(line_of([&](std::size_t i) { return columns_[i].title; })) + "\n";
  for (const Row& row : rows_) {
    if (row.cells.empty()) {
      text += std::string(table_indent) + row.line + "\n";
    } else {
      text += line_of([&](std::size_t i) { return row.cells[i]; }) + "\n";
    }
  }
  return text;
}

}  // namespace heed::cli
