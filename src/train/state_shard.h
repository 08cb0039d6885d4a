// A process' part of a training state: the numbers at its ranges of the arena, in a file. A state
// may be divided in any way among any number of files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "train/shards.h"
#include "train/state_manifest.h"

namespace heed {

// What a process has of a training state.
struct TrainingArrays {
  std::span<const ArenaRange> ranges;   // ascending
  std::span<const float> parameters;    // of the whole arena; those at the ranges are read
  std::span<const float> first_moment;  // of the ranges, one after the other
  std::span<const float> second_moment;
};

// Which state a shard belongs to.
struct ShardOrigin {
  std::string run;
  std::int64_t step = 0;

  bool operator==(const ShardOrigin&) const = default;
};

// Writes the file atomically. The hash is that of what can be read from it.
ShardFile write_state_shard(const std::filesystem::path& path, const ShardOrigin& origin,
                            const TrainingArrays& arrays);

// A shard that was written.
class StateShard {
 public:
  // Throws Error{corrupt_data} where it is no shard, one of another run or step, or has ranges
  // that are not ascending parts of an arena of `numbers`.
  StateShard(const std::filesystem::path& path, const ShardOrigin& origin, std::int64_t numbers);

  const std::vector<ArenaRange>& ranges() const { return ranges_; }

  // Of a range, by its index.
  struct Numbers {
    std::span<const std::byte> parameters;
    std::span<const std::byte> first_moment;
    std::span<const std::byte> second_moment;
  };
  Numbers numbers(std::size_t range) const;

 private:
  SafetensorsFile file_;
  std::vector<ArenaRange> ranges_;
  std::vector<std::size_t> starts_;  // of the ranges' numbers in the file
};

// Throws Error{corrupt_data} or Error{not_found}, naming the file, where it is missing or another
// than the manifest describes.
void require_shard_size(const std::filesystem::path& path, const ShardFile& shard);
void require_shard_hash(const std::filesystem::path& path, const ShardFile& shard);

}  // namespace heed
