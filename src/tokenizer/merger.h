// Byte-pair merging of one word: starting from its bytes or characters, the adjacent pair with the
// lowest rank (the leftmost of equals) becomes one token, until no pair has a rule.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/pair_map.h"

namespace heed {

// "left right become result"; its rank is its index in the list of merges.
struct MergeRule {
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::int32_t result = 0;
};

class Merger {
 public:
  // `byte_ids[b]` is the token of the single byte b. No pair may occur in two rules.
  Merger(const std::array<std::int32_t, 256>& byte_ids, const std::vector<MergeRule>& rules);

  // Appends the tokens of `word`. Quadratic for short words, where that is fastest; n log n in
  // bytes for long ones.
  void append_tokens(std::string_view word, std::vector<std::int32_t>& tokens) const;

  // The same from tokens: of single characters, for example.
  void append_tokens(std::span<const std::int32_t> word, std::vector<std::int32_t>& tokens) const;

 private:
  struct Outcome {
    std::uint32_t rank = 0;
    std::int32_t result = 0;
  };

  Outcome outcome(std::int32_t left, std::int32_t right) const;
  // `id_at(i)` is the token of which symbol i of `count` is made.
  template <class IdAt>
  void append_merged(std::size_t count, IdAt id_at, std::vector<std::int32_t>& tokens) const;
  template <class IdAt>
  void append_short(std::size_t count, IdAt id_at, std::vector<std::int32_t>& tokens) const;
  template <class IdAt>
  void append_long(std::size_t count, IdAt id_at, std::vector<std::int32_t>& tokens) const;

  std::array<std::int32_t, 256> byte_ids_;
  PairMap<Outcome> outcomes_;
};

}  // namespace heed
