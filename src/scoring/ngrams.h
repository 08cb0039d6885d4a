// The n-grams of a few texts: a sentence and what it is compared with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heed::scoring {

// A text as numbers of its words or characters.
using Units = std::vector<std::uint32_t>;

// Numbers words so that equal words of all texts have equal numbers.
std::vector<Units> number_words(std::span<const std::vector<std::u32string>> texts);
std::vector<Units> number_characters(std::span<const std::u32string> texts);

// Numbers the n-grams of `texts`, first those of one unit, so that equal n-grams have equal
// numbers.
class Ngrams {
 public:
  explicit Ngrams(std::vector<Units> texts);

  // To the n-grams of one unit more.
  void lengthen();

  // How many n-grams a text has, repetitions included.
  std::int64_t size(std::size_t text) const { return std::ssize(numbers_[text]); }

  // How often each n-gram occurs in a text, by number.
  std::vector<std::int64_t> counts(std::size_t text) const;

 private:
  void number(const std::vector<std::vector<std::uint64_t>>& keys);

  std::vector<Units> texts_;
  std::size_t order_ = 1;
  std::vector<Units> numbers_;  // of each text's n-grams, by position
  std::size_t distinct_ = 0;
};

// The n-grams that two texts have in common: the smaller count of each.
std::int64_t common(std::span<const std::int64_t> counts, std::span<const std::int64_t> others);

}  // namespace heed::scoring
