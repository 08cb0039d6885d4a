// Learns merges from counted words: the second half of training a byte-pair tokenizer.
//
// All words are stored in one array of symbols, each linked to its neighbours in the word. For each
// pair of neighbours it keeps the count and the indices where the pair may occur, so that the cost
// of a merge is proportional to its occurrences.
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "tokenizer/merger.h"
#include "tokenizer/pair_map.h"
#include "tokenizer/word_counts.h"

namespace heed {

class MergeLearner {
 public:
  // `reserved` are strings that no merge may make, since they are tokens already.
  MergeLearner(std::span<const WordCount> words, const std::array<std::int32_t, 256>& byte_ids,
               std::span<const std::string> reserved);

  // Merges the most frequent pair (of equals, the one of lower ids) into the token `next_id()`,
  // unless it occurs fewer than `min_frequency` times; then it returns false. A pair whose join is
  // a token already is never merged, so that every token has one derivation.
  bool learn_one(std::int64_t min_frequency);

  std::int32_t next_id() const { return static_cast<std::int32_t>(tokens_.size()); }
  std::vector<std::string>& tokens() { return tokens_; }  // bytes by id
  std::vector<MergeRule>& merges() { return merges_; }

 private:
  using Place = std::uint32_t;
  static constexpr Place none = UINT32_MAX;

  struct Symbol {
    std::int32_t id;  // -1: absorbed by the symbol before it
    Place before;
    Place after;
    std::uint32_t word;
  };
  struct PairUse {
    std::int64_t count = 0;     // occurrences; those that overlap ("aaa") count each
    std::vector<Place> places;  // of left symbols; some may be out of date
  };
  struct Candidate {
    std::int64_t count;
    TokenPair pair;
    // The largest is merged first.
    friend bool operator<(const Candidate& left, const Candidate& right) {
      if (left.count != right.count) return left.count < right.count;
      return right.pair < left.pair;
    }
  };

  void add_use(TokenPair pair, Place place, std::int64_t count);
  bool next_candidate(std::int64_t min_frequency, TokenPair& pair);
  void apply(MergeRule rule);

  std::vector<std::int64_t> word_counts_;
  std::vector<Symbol> symbols_;
  PairMap<PairUse> uses_;
  std::priority_queue<Candidate> candidates_;  // counts may be out of date, but never too low
  std::vector<TokenPair> touched_;             // pairs that the merge being applied makes
  std::vector<std::string> tokens_;
  std::unordered_set<std::string> known_;  // all of tokens_, and the reserved strings
  std::vector<MergeRule> merges_;
};

}  // namespace heed
