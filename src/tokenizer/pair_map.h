// A flat hash map from pairs of token ids: open addressing, no removal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace heed {

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

}  // namespace heed
