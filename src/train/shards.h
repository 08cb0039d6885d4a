// Which numbers of the arena each process of a group updates: optimizer states are sharded (ZeRO
// stage 1, Rajbhandari et al. 2020). The arena is cut into buckets, and each bucket into a part for
// every process, so that all of them send and receive as much at any time.
#pragma once

#include <span>
#include <vector>

#include "comm/group.h"

namespace heed {

// Numbers [begin, end) of the arena.
struct ArenaRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  bool operator==(const ArenaRange&) const = default;
};

class Shards {
 public:
  // Of an arena of `size` numbers. Borrows the group.
  Shards(std::size_t size, Group& group);

  // Ascending; those of all processes together make up the arena.
  const std::vector<ArenaRange>& own() const { return own_; }

  // The own numbers become their sums over all processes; the others are left as they are.
  void add_up(std::span<float> values) const;

  // All numbers become those of the processes that own them.
  void share(std::span<float> values) const;

  // `whole` (the arena; empty except in the first process) = what every process has in `owned`,
  // which holds the numbers of its own ranges, one after the other.
  void collect(std::span<const float> owned, std::span<float> whole) const;

 private:
  struct Bucket {
    std::size_t begin;
    std::vector<std::size_t> starts;  // of the processes' parts, from `begin`

    std::size_t size() const { return starts.back(); }
  };

  Group& group_;
  std::vector<Bucket> buckets_;
  std::vector<ArenaRange> own_;
};

}  // namespace heed
