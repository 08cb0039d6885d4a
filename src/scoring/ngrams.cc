#include "scoring/ngrams.h"

#include <algorithm>
#include <unordered_map>

namespace heed::scoring {

std::vector<Units> number_words(std::span<const std::vector<std::u32string>> texts) {
  std::unordered_map<std::u32string_view, std::uint32_t> numbers;
  std::vector<Units> numbered;
  for (const std::vector<std::u32string>& words : texts) {
    Units& units = numbered.emplace_back();
    units.reserve(words.size());
    for (const std::u32string& word : words) {
      const auto next = static_cast<std::uint32_t>(numbers.size());
      units.push_back(numbers.try_emplace(word, next).first->second);
    }
  }
  return numbered;
}

std::vector<Units> number_characters(std::span<const std::u32string> texts) {
  std::vector<Units> numbered;
  for (const std::u32string& text : texts) numbered.emplace_back(text.begin(), text.end());
  return numbered;
}

Ngrams::Ngrams(std::vector<Units> texts) : texts_(std::move(texts)) {
  std::vector<std::vector<std::uint64_t>> keys;
  for (const Units& units : texts_) keys.emplace_back(units.begin(), units.end());
  number(keys);
}

// An n-gram is the pair of the n-gram before its last unit, and that unit.
void Ngrams::lengthen() {
  std::vector<std::vector<std::uint64_t>> keys(texts_.size());
  for (std::size_t text = 0; text < texts_.size(); ++text) {
    for (std::size_t i = 0; i + order_ < texts_[text].size(); ++i) {
      keys[text].push_back(std::uint64_t{numbers_[text][i]} << 32 | texts_[text][i + order_]);
    }
  }
  ++order_;
  number(keys);
}

void Ngrams::number(const std::vector<std::vector<std::uint64_t>>& keys) {
  std::vector<std::uint64_t> all;
  for (const auto& of_text : keys) all.insert(all.end(), of_text.begin(), of_text.end());
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  distinct_ = all.size();
  numbers_.assign(keys.size(), {});
  for (std::size_t text = 0; text < keys.size(); ++text) {
    numbers_[text].reserve(keys[text].size());
    for (const std::uint64_t key : keys[text]) {
      const auto found = std::lower_bound(all.begin(), all.end(), key);
      numbers_[text].push_back(static_cast<std::uint32_t>(found - all.begin()));
    }
  }
}

std::vector<std::int64_t> Ngrams::counts(std::size_t text) const {
  std::vector<std::int64_t> counts(distinct_);
  for (const std::uint32_t number : numbers_[text]) ++counts[number];
  return counts;
}

std::int64_t common(std::span<const std::int64_t> counts, std::span<const std::int64_t> others) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) sum += std::min(counts[i], others[i]);
  return sum;
}

}  // namespace heed::scoring
