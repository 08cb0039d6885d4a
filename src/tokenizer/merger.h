// Byte-pair merging of one word: starting from its bytes or characters, the adjacent pair with the
// lowest rank (the leftmost of equals) becomes one token, until no pair has a rule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

// A flat hash map from pairs of token ids: open addressing, no removal.
struct TokenPair {
  std::int32_t left = 0;
  std::int32_t right = 0;

  friend bool operator==(const TokenPair&, const TokenPair&) = default;
  friend auto operator<=>(const TokenPair&,
                          const TokenPair&) = default;  // NOLINT(modernize-use-nullptr)
};

template <class Value>
class PairMap {
 public:
  explicit PairMap(std::size_t expected = 0) { grow(expected); }

  std::size_t size() const { return size_; }

  const Value* find(TokenPair pair) const {
    for (std::size_t slot = first_slot(pair);; slot = (slot + 1) & mask_) {
      const Entry& entry = entries_[slot];
      if (entry.pair == pair) return &entry.value;
      if (entry.pair == vacant) return nullptr;
    }
  }

  // The value of `pair`, made by default construction when it was absent; and whether it was. The
  // reference holds until the next call. Ids are not negative.
  std::pair<Value&, bool> insert(TokenPair pair) {
    if ((size_ + 1) * 2 > entries_.size()) grow(size_ + 1);
    for (std::size_t slot = first_slot(pair);; slot = (slot + 1) & mask_) {
      Entry& entry = entries_[slot];
      if (entry.pair == pair) return {entry.value, false};
      if (entry.pair == vacant) {
        entry.pair = pair;
        ++size_;
        return {entry.value, true};
      }
    }
  }

 private:
  static constexpr TokenPair vacant{-1, -1};
  struct Entry {
    TokenPair pair = vacant;
    Value value{};
  };

  std::size_t first_slot(TokenPair pair) const {
    const std::uint64_t key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(pair.left))
                                  << 32 |
                              static_cast<std::uint32_t>(pair.right);
    return (key * 0x9E3779B97F4A7C15u) >> shift_;  // Fibonacci hashing: 2^64 / golden ratio
  }

  // Makes room for `expected` entries at a load of at most one half.
  void grow(std::size_t expected) {
    int bits = 4;
    while ((std::size_t{1} << bits) < expected * 2 + 2) ++bits;
    if (!entries_.empty() && (std::size_t{1} << bits) <= entries_.size()) ++bits;
    std::vector<Entry> old(std::size_t{1} << bits);
    old.swap(entries_);
    mask_ = entries_.size() - 1;
    shift_ = 64 - bits;
    for (Entry& entry : old) {
      if (entry.pair == vacant) continue;
      std::size_t slot = first_slot(entry.pair);
      while (!(entries_[slot].pair == vacant)) slot = (slot + 1) & mask_;
      entries_[slot] = std::move(entry);
    }
  }

  std::vector<Entry> entries_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
  int shift_ = 64;
};

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
