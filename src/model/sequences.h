// What the rows of a pass are: sequences, one below the other. Prompts, batches of any lengths,
// steps of cached decoding and beams differ in this list alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

class KeyValueCache;

// Positions [first_position, first_position + length()) of a text, in rows [row_begin, row_end).
struct Sequence {
  std::int64_t row_begin = 0;
  std::int64_t row_end = 0;
  std::int64_t first_position = 0;  // of its first row; with a cache, the positions already in it
  KeyValueCache* cache = nullptr;   // stores its keys and values; null: it attends to its own rows

  std::int64_t length() const { return row_end - row_begin; }
};

class Sequences {
 public:
  Sequences() : Sequences(1, 1) {}
  // So many sequences of one length, from position 0 on.
  Sequences(std::int64_t count, std::int64_t length);
  // Sequences of one length, each from a position of its own on.
  static Sequences from_positions(std::span<const std::int64_t> first_positions,
                                  std::int64_t length);
  // The next positions of all sequences of a cache, which attend together.
  static Sequences next_of(KeyValueCache& cache, std::int64_t length = 1);
  // The next positions of sequences that have a cache each.
  static Sequences next_of(std::span<KeyValueCache* const> caches, std::int64_t length = 1);
  // Sequences of any lengths: sequence b has rows [row_starts[b], row_starts[b + 1]). With caches
  // (B), these hold its keys and values.
  static Sequences of_lengths(std::span<const std::int64_t> row_starts,
                              std::span<KeyValueCache* const> caches = {});

  std::int64_t count() const { return count_; }  // B
  std::int64_t rows() const {
    return list_.empty() ? count_ * length_ : list_.back().row_end;
  }  // N
  // T, of all sequences; 0 where they may differ.
  std::int64_t length() const { return length_; }
  bool is_ragged() const { return length_ == 0; }
  // As which views show the rows: (B, T), or (1, N) where lengths may differ.
  std::int64_t view_batch() const { return is_ragged() ? 1 : count(); }
  std::int64_t view_positions() const { return is_ragged() ? rows() : length_; }

  Sequence operator[](std::int64_t b) const {
    if (!list_.empty()) return list_[static_cast<std::size_t>(b)];
    return {b * length_, (b + 1) * length_, first_position_, cache_};
  }

  class Iterator {
   public:
    Iterator(const Sequences& all, std::int64_t b) : all_(&all), b_(b) {}
    Sequence operator*() const { return (*all_)[b_]; }
    Iterator& operator++() {
      ++b_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return b_ != other.b_; }

   private:
    const Sequences* all_;
    std::int64_t b_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, count_}; }

  bool have_caches() const { return (*this)[0].cache != nullptr; }
  // Whether the keys and values of all are one view, (B, S, G, D).
  bool attend_together() const { return list_.empty(); }

  std::int64_t positions_end() const;  // after the last position of any sequence
  std::int64_t position_of_row(std::int64_t row) const;
  std::vector<std::int64_t> row_positions() const;  // (N)

  // Counts the positions of the sequences as held by their caches, once every layer has stored
  // them.
  void advance_caches() const;

 private:
  // Sequences alike, which most passes have, take no memory: a list is one of others.
  std::int64_t count_ = 1;
  std::int64_t length_ = 1;
  std::int64_t first_position_ = 0;
  KeyValueCache* cache_ = nullptr;
  std::vector<Sequence> list_;
};

}  // namespace heed
