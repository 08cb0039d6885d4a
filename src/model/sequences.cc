#include "model/sequences.h"

#include <algorithm>

#include "base/error.h"
#include "model/cache.h"

namespace heed {

Sequences::Sequences(std::int64_t count, std::int64_t length) : count_(count), length_(length) {
  check(count >= 1 && length >= 1, "a pass has at least one sequence, of at least one position");
}

Sequences Sequences::from_positions(std::span<const std::int64_t> first_positions,
                                    std::int64_t length) {
  Sequences sequences(std::ssize(first_positions), length);
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    sequences.list_.push_back({.row_begin = b * length,
                               .row_end = (b + 1) * length,
                               .first_position = first_positions[static_cast<std::size_t>(b)]});
  }
  return sequences;
}

Sequences Sequences::next_of(KeyValueCache& cache, std::int64_t length) {
  Sequences sequences(cache.batch(), length);
  sequences.first_position_ = cache.length();
  sequences.cache_ = &cache;
  return sequences;
}

Sequences Sequences::next_of(std::span<KeyValueCache* const> caches, std::int64_t length) {
  Sequences sequences(std::ssize(caches), length);
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    KeyValueCache* const cache = caches[static_cast<std::size_t>(b)];
    check(cache->batch() == 1, "a cache of one sequence");
    sequences.list_.push_back({.row_begin = b * length,
                               .row_end = (b + 1) * length,
                               .first_position = cache->length(),
                               .cache = cache});
  }
  return sequences;
}

Sequences Sequences::of_lengths(std::span<const std::int64_t> row_starts,
                                std::span<KeyValueCache* const> caches) {
  check(row_starts.size() >= 2, "a pass has at least one sequence");
  check(caches.empty() || caches.size() + 1 == row_starts.size(), "a cache for each sequence");
  Sequences sequences(std::ssize(row_starts) - 1, 1);
  sequences.length_ = 0;
  for (std::size_t b = 0; b + 1 < row_starts.size(); ++b) {
    sequences.list_.push_back({.row_begin = row_starts[b],
                               .row_end = row_starts[b + 1],
                               .cache = caches.empty() ? nullptr : caches[b]});
  }
  return sequences;
}

std::int64_t Sequences::positions_end() const {
  std::int64_t end = 0;
  for (const Sequence sequence : *this) {
    end = std::max(end, sequence.first_position + sequence.length());
  }
  return end;
}

std::int64_t Sequences::position_of_row(std::int64_t row) const {
  if (list_.empty()) return first_position_ + row % length_;
  const auto next = std::ranges::upper_bound(list_, row, {}, &Sequence::row_begin);
  const Sequence& sequence = *std::prev(next);
  return sequence.first_position + row - sequence.row_begin;
}

std::vector<std::int64_t> Sequences::row_positions() const {
  std::vector<std::int64_t> positions;
  positions.reserve(static_cast<std::size_t>(rows()));
  for (const Sequence sequence : *this) {
    for (std::int64_t t = 0; t < sequence.length(); ++t) {
      positions.push_back(sequence.first_position + t);
    }
  }
  return positions;
}

void Sequences::advance_caches() const {
  const KeyValueCache* previous = nullptr;
  for (const Sequence sequence : *this) {
    if (sequence.cache == nullptr || sequence.cache == previous) continue;
    sequence.cache->advance(sequence.length());
    previous = sequence.cache;
  }
}

}  // namespace heed
