// Which part of the text each training sequence is: shuffled, without replay and without loss.
#pragma once

#include <cstdint>

namespace heed {

// Where a run stands in its data; saved with it.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t index = 0;  // sequences already taken from this epoch

  bool operator==(const DataPosition&) const = default;
};

// Every epoch cuts the stream, from a fresh random phase, into windows of sequence_length tokens
// (and the token after each, its last target), and visits each window exactly once in a fresh
// random order. The fewer than sequence_length tokens before the first window and after the last
// are covered by other epochs' phases. A pure function of (tokens, sequence_length, seed,
// position).
class BatchOrder {
 public:
  // Throws Error{invalid_argument} when there are not tokens for a single window.
  BatchOrder(std::int64_t tokens, std::int64_t sequence_length, std::uint64_t seed);

  // First token of the window at `position`, which moves on to the next.
  std::int64_t next(DataPosition& position) const;

  std::int64_t windows(std::int64_t epoch) const;

 private:
  std::int64_t phase(std::int64_t epoch) const;

  std::int64_t tokens_;
  std::int64_t sequence_length_;
  std::uint64_t seed_;
};

}  // namespace heed
