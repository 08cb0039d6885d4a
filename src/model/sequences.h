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

  std::int64_t count() const { return std::ssize(list_); }    // B
  std::int64_t rows() const { return list_.back().row_end; }  // N
  // T, of all sequences; 0 where they may differ.
  std::int64_t length() const { return length_; }
  bool is_ragged() const { return length_ == 0; }
  // As which views show the rows: (B, T), or (1, N) where lengths may differ.
  std::int64_t view_batch() const { return is_ragged() ? 1 : count(); }
  std::int64_t view_positions() const { return is_ragged() ? rows() : length_; }

  const Sequence& operator[](std::int64_t b) const { return list_[static_cast<std::size_t>(b)]; }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

  bool have_caches() const { return list_.front().cache != nullptr; }
  // Whether the keys and values of all are one view, (B, S, G, D).
  bool attend_together() const;

  std::int64_t positions_end() const;  // after the last position of any sequence
  std::int64_t position_of_row(std::int64_t row) const;
  std::vector<std::int64_t> row_positions() const;    // (N)
  std::vector<std::int64_t> first_positions() const;  // (B)

  // Counts the positions of the sequences as held by their caches, once every layer has stored
  // them.
  void advance_caches() const;

 private:
  std::vector<Sequence> list_;  // not empty
  std::int64_t length_ = 1;
};

}  // namespace heed
