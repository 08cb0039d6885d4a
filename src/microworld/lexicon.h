// Words that all kinds of stories share. Sharing keeps the vocabulary small while every story still
// has many free choices.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "microworld/phrase.h"

namespace heed::microworld {

std::span<const std::string_view> roles();   // cook, gardener, ...
std::span<const std::string_view> rooms();   // library, study, ...
std::span<const std::string_view> things();  // jug, bowl, ...: each takes "a", not "an"

// {role} {room} {thing} {colour} {number} {number_capital} {weekday}: each writes a free choice.
const Slots& common_slots();

// The adjectives of a table's rows in one list; those of row r are at r * n .. r * n + n - 1.
template <class Row, std::size_t rows, std::size_t n = std::tuple_size_v<decltype(Row::adjectives)>>
constexpr std::array<std::string_view, rows * n> all_adjectives(
    const std::array<Row, rows>& table) {
  std::array<std::string_view, rows * n> all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = table[i / n].adjectives[i % n];
  return all;
}

// The row of a table that an adjective of all_adjectives() comes from.
template <class Row, std::size_t rows>
constexpr const Row& row_of(const std::array<Row, rows>& table, std::size_t adjective) {
  return table[adjective / std::tuple_size_v<decltype(Row::adjectives)>];
}

// Chooses and writes words of a list one after another, none of them twice.
class WithoutRepeats {
 public:
  explicit WithoutRepeats(std::span<const std::string_view> words)
      : words_(words.begin(), words.end()) {}

  std::string_view write(Writer& writer);

 private:
  std::vector<std::string_view> words_;
};

}  // namespace heed::microworld
