#include "model/sequences.h"

#include <algorithm>

#include "base/error.h"
#include "model/cache.h"

namespace heed {

Sequences::Sequences(std::int64_t count, std::int64_t length) : length_(length) {
  check(count >= 1 && length >= 1, "a pass has at least one sequence, of at least one position");
  list_.reserve(static_cast<std::size_t>(count));
  for (std::int64_t b = 0; b < count; ++b) {
    list_.push_back({.row_begin = b * length, .row_end = (b + 1) * length});
  }
}

Sequences Sequences::from_positions(std::span<const std::int64_t> first_positions,
                                    std::int64_t length) {
  Sequences sequences(std::ssize(first_positions), length);
  for (std::size_t b = 0; b < first_positions.size(); ++b) {
    sequences.list_[b].first_position = first_positions[b];
  }
  return sequences;
}

Sequences Sequences::next_of(KeyValueCache& cache, std::int64_t length) {
  Sequences sequences(cache.batch(), length);
  for (Sequence& sequence : sequences.list_) {
    sequence.first_position = cache.length();
    sequence.cache = &cache;
  }
  return sequences;
}

Sequences Sequences::next_of(std::span<KeyValueCache* const> caches, std::int64_t length) {
  Sequences sequences(std::ssize(caches), length);
  for (std::size_t b = 0; b < caches.size(); ++b) {
    check(caches[b]->batch() == 1, "a cache of one sequence");
    sequences.list_[b].first_position = caches[b]->length();
    sequences.list_[b].cache = caches[b];
  }
  return sequences;
}

Sequences Sequences::of_lengths(std::span<const std::int64_t> row_starts,
                                std::span<KeyValueCache* const> caches) {
  check(row_starts.size() >= 2, "a pass has at least one sequence");
  check(caches.empty() || caches.size() + 1 == row_starts.size(), "a cache for each sequence");
  Sequences sequences;
  sequences.list_.clear();
  sequences.length_ = 0;
  for (std::size_t b = 0; b + 1 < row_starts.size(); ++b) {
    sequences.list_.push_back({.row_begin = row_starts[b],
                               .row_end = row_starts[b + 1],
                               .cache = caches.empty() ? nullptr : caches[b]});
  }
  return sequences;
}

bool Sequences::attend_together() const {
  return !is_ragged() && std::ranges::all_of(list_, [&](const Sequence& sequence) {
    return sequence.cache == list_.front().cache;
  });
}

std::int64_t Sequences::positions_end() const {
  std::int64_t end = 0;
  for (const Sequence& sequence : list_) {
    end = std::max(end, sequence.first_position + sequence.length());
  }
  return end;
}

std::int64_t Sequences::position_of_row(std::int64_t row) const {
  const auto next = std::ranges::upper_bound(list_, row, {}, &Sequence::row_begin);
  const Sequence& sequence = *std::prev(next);
  return sequence.first_position + row - sequence.row_begin;
}

std::vector<std::int64_t> Sequences::row_positions() const {
  std::vector<std::int64_t> positions;
  positions.reserve(static_cast<std::size_t>(rows()));
  for (const Sequence& sequence : list_) {
    for (std::int64_t t = 0; t < sequence.length(); ++t) {
      positions.push_back(sequence.first_position + t);
    }
  }
  return positions;
}

std::vector<std::int64_t> Sequences::first_positions() const {
  std::vector<std::int64_t> positions;
  for (const Sequence& sequence : list_) positions.push_back(sequence.first_position);
  return positions;
}

void Sequences::advance_caches() const {
  const KeyValueCache* previous = nullptr;
  for (const Sequence& sequence : list_) {
    if (sequence.cache == nullptr || sequence.cache == previous) continue;
    sequence.cache->advance(sequence.length());
    previous = sequence.cache;
  }
}

}  // namespace heed
