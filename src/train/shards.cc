#include "train/shards.h"

#include <algorithm>

namespace heed {
namespace {

// Slices begin at whole pages, so that memory for the others' can be given back.
constexpr std::size_t page_numbers = 4096 / sizeof(float);
constexpr std::size_t max_numbers = std::size_t{1} << 27;       // of a segment: half a GiB
constexpr std::size_t streamed_numbers = std::size_t{1} << 20;  // at once

std::vector<std::size_t> slice_starts(std::size_t begin, std::size_t end, std::size_t processes) {
  std::vector<std::size_t> starts{0};
  for (std::size_t r = 1; r <= processes; ++r) {
    const std::size_t exact = begin + (end - begin) * r / processes;
    const std::size_t page = (exact + page_numbers - 1) / page_numbers * page_numbers;
    starts.push_back((r == processes ? end : std::min(page, end)) - begin);
  }
  return starts;
}

}  // namespace

Shards::Shards(const std::vector<PartRange>& parts, Group& group) : group_(group) {
  const auto processes = static_cast<std::size_t>(group.size());
  for (const PartRange& part : parts) {
    for (std::size_t begin = part.begin; begin < part.end; begin += max_numbers) {
      const std::size_t end = std::min(begin + max_numbers, part.end);
      segments_.push_back({begin, slice_starts(begin, end, processes)});
      const ArenaRange own = segments_.back().slice(group.rank());
      if (own.size() == 0) continue;
      if (!own_.empty() && own_.back().end == own.begin) {
        own_.back().end = own.end;
      } else {
        own_.push_back(own);
      }
    }
  }
}

void Shards::add_up(std::span<float> values) const {
  for (const ArenaSegment& segment : segments_) {
    group_.reduce_scatter(values.subspan(segment.begin, segment.size()), segment.starts);
  }
}

void Shards::share(std::span<float> values) const {
  for (const ArenaSegment& segment : segments_) {
    all_gather(group_, values.subspan(segment.begin, segment.size()), segment.starts);
  }
}

void Shards::stream_arena(std::span<const float> arena, const NumberSink& sink) const {
  std::vector<float> piece;
  for (const ArenaSegment& segment : segments_) {
    for (int rank = 0; rank < group_.size(); ++rank) {
      const ArenaRange slice = segment.slice(rank);
      for (std::size_t at = slice.begin; at < slice.end; at += streamed_numbers) {
        const std::size_t count = std::min(streamed_numbers, slice.end - at);
        if (group_.is_alone()) {
          sink(arena.subspan(at, count));
          continue;
        }
        piece.resize(count);
        if (rank == group_.rank()) std::ranges::copy(arena.subspan(at, count), piece.begin());
        group_.broadcast(std::as_writable_bytes(std::span(piece)), rank);
        sink(piece);
      }
    }
  }
}

}  // namespace heed
