#include "tokenizer/merge_learner.h"

#include <algorithm>

#include "base/error.h"

namespace heed {

MergeLearner::MergeLearner(std::span<const WordCount> words,
                           const std::array<std::int32_t, 256>& byte_ids,
                           std::span<const std::string> reserved)
    : tokens_(256), known_(reserved.begin(), reserved.end()) {
  for (int byte = 0; byte < 256; ++byte) {
    tokens_[byte_ids[byte]] = std::string(1, static_cast<char>(byte));
    known_.insert(tokens_[byte_ids[byte]]);
  }
  std::size_t total = 0;
  for (const WordCount& word : words) total += word.word.size();
  require(total < none, ErrorCode::out_of_memory,
          "the distinct words of the texts have {} bytes; expected fewer than {}", total, none);
  symbols_.reserve(total);
  word_counts_.reserve(words.size());
  for (const WordCount& word : words) {
    const auto first = static_cast<Place>(symbols_.size());
    const auto last = static_cast<Place>(first + word.word.size() - 1);
    for (Place place = first; place <= last; ++place) {
      symbols_.push_back({byte_ids[static_cast<unsigned char>(word.word[place - first])],
                          place == first ? none : place - 1, place == last ? none : place + 1,
                          static_cast<std::uint32_t>(word_counts_.size())});
    }
    for (Place place = first; place < last; ++place) {
      add_use({symbols_[place].id, symbols_[place + 1].id}, place, word.count);
    }
    word_counts_.push_back(word.count);
  }
  for (const TokenPair pair : touched_) candidates_.push({uses_.find(pair)->count, pair});
  touched_.clear();
}

// The first use of a pair in a step puts it on touched_, to become a candidate when the step ends.
void MergeLearner::add_use(TokenPair pair, Place place, std::int64_t count) {
  auto [use, absent] = uses_.insert(pair);
  if (absent) touched_.push_back(pair);
  use.count += count;
  use.places.push_back(place);
}

bool MergeLearner::next_candidate(std::int64_t min_frequency, TokenPair& pair) {
  while (!candidates_.empty()) {
    Candidate candidate = candidates_.top();
    if (candidate.count < min_frequency) return false;
    candidates_.pop();
    const std::int64_t count = uses_.find(candidate.pair)->count;
    if (count != candidate.count) {
      candidates_.push({count, candidate.pair});
      continue;
    }
    if (known_.contains(tokens_[candidate.pair.left] + tokens_[candidate.pair.right])) continue;
    pair = candidate.pair;
    return true;
  }
  return false;
}

bool MergeLearner::learn_one(std::int64_t min_frequency) {
  TokenPair pair;
  if (!next_candidate(std::max<std::int64_t>(min_frequency, 1), pair)) return false;
  const MergeRule rule{pair.left, pair.right, next_id()};
  tokens_.push_back(tokens_[pair.left] + tokens_[pair.right]);
  known_.insert(tokens_.back());
  merges_.push_back(rule);
  apply(rule);
  return true;
}

void MergeLearner::apply(MergeRule rule) {
  PairUse merged;
  std::swap(merged, uses_.insert({rule.left, rule.right}).first);
  // From left to right, as encoding merges: "aaa" becomes "aa" "a".
  std::sort(merged.places.begin(), merged.places.end());
  for (const Place place : merged.places) {
    Symbol& left = symbols_[place];
    if (left.id != rule.left || left.after == none) continue;
    Symbol& right = symbols_[left.after];
    if (right.id != rule.right) continue;
    const std::int64_t count = word_counts_[left.word];
    if (left.before != none) {
      const std::int32_t before = symbols_[left.before].id;
      uses_.insert({before, rule.left}).first.count -= count;
      add_use({before, rule.result}, left.before, count);
    }
    if (right.after != none) {
      const std::int32_t after = symbols_[right.after].id;
      uses_.insert({rule.right, after}).first.count -= count;
      add_use({rule.result, after}, place, count);
      symbols_[right.after].before = place;
    }
    left.id = rule.result;
    left.after = right.after;
    right.id = -1;
  }
  // Overlapping occurrences leave a remainder in the count of the pair itself; none is left.
  uses_.insert({rule.left, rule.right}).first.count = 0;
  for (const TokenPair pair : touched_) candidates_.push({uses_.find(pair)->count, pair});
  touched_.clear();
}

}  // namespace heed
