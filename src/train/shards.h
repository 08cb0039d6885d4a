// Which numbers of the arena each process of a group updates (ZeRO, Rajbhandari et al. 2020). Every
// part of the model is cut into a slice for every process, so that all of them send and receive as
// much at any time.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "comm/group.h"
#include "model/parameter_schedule.h"

namespace heed {

// Numbers [begin, end) of the arena.
struct ArenaRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  bool operator==(const ArenaRange&) const = default;
};

// A part of the model, or of one that is too large to be exchanged at once, and where the slices of
// the processes begin, counted from `begin`; after the last, where it ends.
struct ArenaSegment {
  std::size_t begin = 0;
  std::vector<std::size_t> starts;

  std::size_t size() const { return starts.back(); }
  ArenaRange slice(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return {begin + starts[r], begin + starts[r + 1]};
  }
};

using NumberSink = std::function<void(std::span<const float>)>;
// Passes numbers to a sink, in their order and in pieces.
using NumberStream = std::function<void(const NumberSink&)>;

class Shards {
 public:
  // Shards of a model's parts. Borrows the group.
  Shards(const std::vector<PartRange>& parts, Group& group);
  // Shards of an arena of `size` numbers that is one part.
  Shards(std::size_t size, Group& group) : Shards({PartRange{{}, 0, size}}, group) {}

  // Ascending; those of all processes together make up the arena.
  const std::vector<ArenaRange>& own() const { return own_; }
  // Ascending.
  const std::vector<ArenaSegment>& segments() const { return segments_; }

  // The own numbers become their sums over all processes; the others are left as they are.
  void add_up(std::span<float> values) const;

  // All numbers become those of the processes that own them.
  void share(std::span<float> values) const;

  // Passes the numbers of the whole arena to `sink` of every process, in their order and in pieces.
  // `arena` has those of the own ranges in their places.
  void stream_arena(std::span<const float> arena, const NumberSink& sink) const;

 private:
  Group& group_;
  std::vector<ArenaSegment> segments_;
  std::vector<ArenaRange> own_;
};

}  // namespace heed
