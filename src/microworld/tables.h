// The tables of words that stories and pairs of sentences are made of: tab-separated text beside
// the source, embedded in the program.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace heed::microworld {

// The parts of a text; "-" is an empty one.
std::vector<std::string_view> parts_of(std::string_view text, char separator);

// A line. What it has no column for is empty.
class TableRow {
 public:
  explicit TableRow(std::string_view line) : columns_(parts_of(line, '\t')) {}

  std::string_view operator[](std::size_t column) const {
    return column < columns_.size() ? columns_[column] : std::string_view();
  }

 private:
  std::vector<std::string_view> columns_;
};

// A text of sections, "[name]", and their rows. Lines that are empty or begin with # are left out.
class WordTables {
 public:
  explicit WordTables(std::string_view text);  // which is borrowed

  std::span<const TableRow> rows(std::string_view section) const;

 private:
  std::vector<std::pair<std::string_view, std::vector<TableRow>>> sections_;
};

const WordTables& story_tables();      // stories.tsv
const WordTables& bilingual_tables();  // bilingual/words.tsv

// The rows of a section of stories.tsv, each made of its columns.
template <class Row>
std::vector<Row> read_rows(std::string_view section, Row (*read)(const TableRow&)) {
  std::vector<Row> rows;
  for (const TableRow& row : story_tables().rows(section)) rows.push_back(read(row));
  return rows;
}

// Words of a column, as many as a row's adjectives.
template <std::size_t n>
std::array<std::string_view, n> adjectives_of(std::string_view column) {
  const std::vector<std::string_view> words = parts_of(column, ' ');
  std::array<std::string_view, n> adjectives;
  for (std::size_t i = 0; i < n; ++i) adjectives[i] = words[i];
  return adjectives;
}

// A section whose rows are chosen by one of their adjectives.
template <class Row>
class AdjectiveTable {
 public:
  // Adjectives of a row.
  static constexpr std::size_t synonyms = std::tuple_size_v<decltype(Row::adjectives)>;

  AdjectiveTable(std::string_view section, Row (*read)(const TableRow&))
      : rows_(read_rows(section, read)) {
    for (const Row& row : rows_) {
      adjectives_.insert(adjectives_.end(), row.adjectives.begin(), row.adjectives.end());
    }
  }

  // Those of all rows; those of row r are at r · synonyms.
  std::span<const std::string_view> adjectives() const { return adjectives_; }
  const Row& operator[](std::size_t row) const { return rows_[row]; }
  const Row& row_of(std::size_t adjective) const { return rows_[adjective / synonyms]; }

 private:
  std::vector<Row> rows_;
  std::vector<std::string_view> adjectives_;
};

}  // namespace heed::microworld
