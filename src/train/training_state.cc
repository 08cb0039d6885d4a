#include "train/training_state.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "comm/group.h"
#include "train/earlier_state.h"

namespace heed {
namespace {

std::filesystem::path shard_folder(const std::filesystem::path& directory) {
  return directory / "training_state";
}

std::filesystem::path manifest_file(const std::filesystem::path& directory) {
  return directory / "training_state.json";
}

std::filesystem::path earlier_file(const std::filesystem::path& directory) {
  return directory / "training_state.safetensors";
}

// Which numbers of `range` are among `own`.
template <class Copy>
void for_common(const ArenaRange& range, std::span<const ArenaRange> own, Copy&& copy) {
  const auto ends_before = [&](const ArenaRange& each) { return each.end <= range.begin; };
  for (auto each = std::ranges::partition_point(own, ends_before);
       each != own.end() && each->begin < range.end; ++each) {
    copy(ArenaRange{std::max(each->begin, range.begin), std::min(each->end, range.end)});
  }
}

// What the first process writes down of a shard that another has written.
std::string described(const ShardFile& shard) {
  return OrderedJson({shard.name, shard.bytes, shard.sha256}).dump();
}

ShardFile shard_described(const std::string& text) {
  const Json json = Json::parse(text);
  return {.name = json[0].get<std::string>(),
          .bytes = json[1].get<std::int64_t>(),
          .sha256 = json[2].get<std::string>()};
}

// Shards make up the arena if, in ascending order, each range begins where the one before ends.
void require_whole(std::vector<ArenaRange> ranges, std::int64_t numbers,
                   const std::filesystem::path& manifest) {
  std::ranges::sort(ranges, {}, &ArenaRange::begin);
  std::size_t end = 0;
  for (const ArenaRange& range : ranges) {
    if (range.begin != end) break;
    end = range.end;
  }
  require(end == static_cast<std::size_t>(numbers), ErrorCode::corrupt_data,
          "{}: its shards together are not the {} numbers of the model", manifest.string(),
          numbers);
}

void publish(const std::filesystem::path& directory, const StateManifest& manifest) {
  write_text_file(manifest_file(directory), state_manifest_text(manifest));
  remove_file(earlier_file(directory));
  remove_unused_shards(directory);
}

}  // namespace

std::filesystem::path training_state_file(const std::filesystem::path& directory) {
  const std::filesystem::path manifest = manifest_file(directory);
  std::error_code error;
  const bool is_earlier = !std::filesystem::exists(manifest, error) &&
                          std::filesystem::exists(earlier_file(directory), error);
  return is_earlier ? earlier_file(directory) : manifest;
}

bool holds_training_state(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::exists(training_state_file(directory), error);
}

void write_checkpoint(const std::filesystem::path& directory, Group& group,
                      const Checkpoint& checkpoint) {
  const RunPosition& position = checkpoint.position;
  // A state of the same step, divided alike, has the same contents.
  const std::filesystem::path file =
      shard_folder(directory) /
      fmt::format("{:08}-{}-of-{}.safetensors", position.step, group.rank() + 1, group.size());
  std::error_code error;
  const bool was_there = std::filesystem::exists(file, error);
  try {
    checkpoint.save_model();
    ShardFile own;
    agreed(group, [&] {
      make_directory(shard_folder(directory));
      own = write_state_shard(file, {checkpoint.run, position.step}, checkpoint.arrays);
    });
    StateManifest manifest{.position = position,
                           .run = checkpoint.run,
                           .numbers = std::ssize(checkpoint.arrays.parameters),
                           .shards = {}};
    for (const std::string& text : gather(group, described(own))) {
      manifest.shards.push_back(shard_described(text));
    }
    agreed(group, [&] {
      if (group.is_first()) publish(directory, manifest);
    });
  } catch (...) {
    if (!was_there) std::filesystem::remove(file, error);
    throw;
  }
}

RunPosition load_training_state(const std::filesystem::path& directory, const Group& group,
                                std::span<const ArenaRange> own, GptParameters& parameters,
                                Optimizer& optimizer) {
  const std::filesystem::path file = training_state_file(directory);
  if (file == earlier_file(directory)) {
    return load_earlier_state(file, own, parameters, optimizer);
  }
  const StateManifest manifest = read_state_manifest(file);
  require(manifest.numbers == std::ssize(parameters.all()), ErrorCode::corrupt_data,
          "{}: a state of {} numbers, but this run's model has {}", file.string(), manifest.numbers,
          parameters.all().size());
  std::vector<ArenaRange> all;
  // One after the other: a process need not have room for all of them.
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    const std::filesystem::path path = shard_folder(directory) / manifest.shards[i].name;
    require_shard_size(path, manifest.shards[i]);
    const StateShard shard(path, {manifest.run, manifest.position.step}, manifest.numbers);
    const auto checker = i % static_cast<std::size_t>(group.size());
    if (checker == static_cast<std::size_t>(group.rank())) {
      require_shard_hash(path, manifest.shards[i]);
    }
    for (std::size_t r = 0; r < shard.ranges().size(); ++r) {
      const ArenaRange& range = shard.ranges()[r];
      all.push_back(range);
      const StateShard::Numbers numbers = shard.numbers(r);
      for_common(range, own, [&](const ArenaRange& common) {
        std::memcpy(parameters.all().data() + common.begin,
                    numbers.parameters.data() + (common.begin - range.begin) * sizeof(float),
                    common.size() * sizeof(float));
      });
      optimizer.set_moments(range, numbers.first_moment, numbers.second_moment);
    }
  }
  require_whole(std::move(all), manifest.numbers, file);
  return manifest.position;
}

RunPosition read_run_position(const std::filesystem::path& directory) {
  const std::filesystem::path file = training_state_file(directory);
  return file == earlier_file(directory) ? read_earlier_position(file)
                                         : read_state_manifest(file).position;
}

void remove_unused_shards(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::string> used;
  const std::filesystem::path file = manifest_file(directory);
  if (std::filesystem::exists(file, error)) {
    for (const ShardFile& shard : read_state_manifest(file).shards) used.push_back(shard.name);
  }
  std::ranges::sort(used);
  std::vector<std::filesystem::path> unused;
  for (std::filesystem::directory_iterator entry(shard_folder(directory), error), end;
       !error && entry != end; entry.increment(error)) {
    if (!std::ranges::binary_search(used, entry->path().filename().string())) {
      unused.push_back(entry->path());
    }
  }
  for (const auto& path : unused) std::filesystem::remove(path, error);
}

}  // namespace heed
