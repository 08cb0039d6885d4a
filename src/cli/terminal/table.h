// Columns that line up. Cells may be coloured.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/terminal.h"

namespace heed::cli {

enum class Align { left, right };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells);
  void add_line(std::string text);  // a line of its own among the rows

  // With a heading, every line indented by two columns and ending in a newline.
  std::string text(const Ink& ink) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string line;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace heed::cli
