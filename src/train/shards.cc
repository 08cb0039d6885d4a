#include "train/shards.h"

#include <algorithm>

namespace heed {
namespace {

constexpr std::size_t bucket_size = std::size_t{1} << 20;  // numbers: 4 MiB
constexpr std::size_t line_size = 16;                      // of a cache line

}  // namespace

Shards::Shards(std::size_t size, Group& group) : group_(group) {
  const auto processes = static_cast<std::size_t>(group.size());
  const std::size_t step = group.is_alone() ? std::max<std::size_t>(size, 1) : bucket_size;
  for (std::size_t begin = 0; begin < size; begin += step) {
    Bucket bucket{.begin = begin, .starts = {0}};
    const std::size_t count = std::min(step, size - begin);
    const std::size_t part = (count + processes - 1) / processes;
    const std::size_t whole_lines = (part + line_size - 1) / line_size * line_size;
    for (std::size_t r = 1; r <= processes; ++r) {
      bucket.starts.push_back(std::min(r * whole_lines, count));
    }
    const auto rank = static_cast<std::size_t>(group.rank());
    const ArenaRange own{begin + bucket.starts[rank], begin + bucket.starts[rank + 1]};
    if (own.size() > 0) own_.push_back(own);
    buckets_.push_back(std::move(bucket));
  }
}

void Shards::add_up(std::span<float> values) const {
  for (const Bucket& bucket : buckets_) {
    group_.reduce_scatter(values.subspan(bucket.begin, bucket.size()), bucket.starts);
  }
}

void Shards::share(std::span<float> values) const {
  for (const Bucket& bucket : buckets_) {
    all_gather(group_, values.subspan(bucket.begin, bucket.size()), bucket.starts);
  }
}

void Shards::collect(std::span<const float> owned, std::span<float> whole) const {
  const auto rank = static_cast<std::size_t>(group_.rank());
  std::vector<float> values;
  std::size_t at = 0;  // in `owned`
  for (const Bucket& bucket : buckets_) {
    values.resize(bucket.size());
    const std::size_t begin = bucket.starts[rank], count = bucket.starts[rank + 1] - begin;
    std::ranges::copy(owned.subspan(at, count),
                      values.begin() + static_cast<std::ptrdiff_t>(begin));
    at += count;
    all_gather(group_, values, bucket.starts);
    if (!whole.empty()) {
      std::ranges::copy(values, whole.begin() + static_cast<std::ptrdiff_t>(bucket.begin));
    }
  }
}

}  // namespace heed
