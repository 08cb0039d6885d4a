#include "train/state_shard.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/content_hash.h"
#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace heed {
namespace {

constexpr const char* ranges_name = "ranges";  // (ranges, 2) i64: begin, end
constexpr const char* parameters_name = "parameters";
constexpr const char* first_moment_name = "first_moment";
constexpr const char* second_moment_name = "second_moment";
constexpr const char* run_key = "run";
constexpr const char* step_key = "step";

// The numbers of the arena at the ranges, one after the other.
OutgoingTensor outgoing_parameters(const TrainingArrays& arrays) {
  const auto size = static_cast<std::int64_t>(arrays.first_moment.size());
  return {.name = parameters_name,
          .dtype = DType::f32,
          .shape = {size},
          .produce = [arrays](const ByteSink& sink) {
            for (const ArenaRange& range : arrays.ranges) {
              sink(std::as_bytes(arrays.parameters.subspan(range.begin, range.size())));
            }
          }};
}

View<const float> as_view(std::span<const float> values) {
  return {values.data(), {std::ssize(values)}};
}

const TensorEntry& entry_of(const SafetensorsFile& file, const char* name, DType dtype) {
  const TensorEntry* const entry = file.find(name);
  require(entry != nullptr && entry->dtype == dtype, ErrorCode::corrupt_data,
          "{}: not a shard of a training state: it has no '{}' of type {}", file.source(), name,
          dtype_name(dtype));
  return *entry;
}

std::string metadata(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

void require_origin(const SafetensorsFile& file, const ShardOrigin& origin) {
  const std::string step = metadata(file, step_key);
  require(metadata(file, run_key) == origin.run, ErrorCode::corrupt_data,
          "{}: a shard of another run: put that of this run back", file.source());
  require(step == std::to_string(origin.step), ErrorCode::corrupt_data,
          "{}: a shard of step {}, but this checkpoint is of step {}: put its own back",
          file.source(), step, origin.step);
}

std::vector<ArenaRange> read_ranges(const SafetensorsFile& file, std::int64_t numbers) {
  const TensorEntry& entry = entry_of(file, ranges_name, DType::i64);
  require(entry.shape.rank() == 2 && entry.shape[1] == 2, ErrorCode::corrupt_data,
          "{}: '{}' has shape {}, expected (ranges, 2)", file.source(), ranges_name,
          entry.shape.text());
  std::vector<std::int64_t> ends(static_cast<std::size_t>(entry.shape.size()));
  std::memcpy(ends.data(), entry.bytes.data(), entry.bytes.size());
  require(std::ranges::is_sorted(ends) &&
              (ends.empty() || (ends.front() >= 0 && ends.back() <= numbers)),
          ErrorCode::corrupt_data, "{}: its ranges are not ascending parts of {} numbers",
          file.source(), numbers);
  std::vector<ArenaRange> ranges;
  for (std::size_t i = 0; i < ends.size(); i += 2) {
    ranges.push_back({static_cast<std::size_t>(ends[i]), static_cast<std::size_t>(ends[i + 1])});
  }
  return ranges;
}

}  // namespace

ShardFile write_state_shard(const std::filesystem::path& path, const ShardOrigin& origin,
                            const TrainingArrays& arrays) {
  std::vector<std::int64_t> ends;
  for (const ArenaRange& range : arrays.ranges) {
    ends.push_back(static_cast<std::int64_t>(range.begin));
    ends.push_back(static_cast<std::int64_t>(range.end));
  }
  const View<const std::int64_t> ranges(ends.data(), {std::ssize(ends) / 2, 2});
  const OutgoingTensor tensors[] = {outgoing(ranges_name, ranges), outgoing_parameters(arrays),
                                    outgoing(first_moment_name, as_view(arrays.first_moment)),
                                    outgoing(second_moment_name, as_view(arrays.second_moment))};
  write_safetensors(path, tensors,
                    {{run_key, origin.run}, {step_key, std::to_string(origin.step)}});
  return {.name = path.filename().string(),
          .bytes = static_cast<std::int64_t>(std::filesystem::file_size(path)),
          .sha256 = hash_file(path, HashKind::sha256).hex};
}

StateShard::StateShard(const std::filesystem::path& path, const ShardOrigin& origin,
                       std::int64_t numbers)
    : file_(SafetensorsFile::open(path)) {
  require_origin(file_, origin);
  ranges_ = read_ranges(file_, numbers);
  starts_.push_back(0);
  for (const ArenaRange& range : ranges_) starts_.push_back(starts_.back() + range.size());
  for (const char* name : {parameters_name, first_moment_name, second_moment_name}) {
    const TensorEntry& entry = entry_of(file_, name, DType::f32);
    require(entry.shape == Shape{static_cast<std::int64_t>(starts_.back())},
            ErrorCode::corrupt_data, "{}: '{}' has shape {}, but its ranges are of {} numbers",
            file_.source(), name, entry.shape.text(), starts_.back());
  }
}

StateShard::Numbers StateShard::numbers(std::size_t range) const {
  const auto part = [&](const char* name) {
    return file_.find(name)->bytes.subspan(starts_[range] * sizeof(float),
                                           ranges_[range].size() * sizeof(float));
  };
  return {part(parameters_name), part(first_moment_name), part(second_moment_name)};
}

void require_shard_size(const std::filesystem::path& path, const ShardFile& shard) {
  require(std::filesystem::exists(path), ErrorCode::not_found,
          "the checkpoint's shard '{}' is missing: put it back, or start a new run", path.string());
  const std::int64_t size = RegularFile(path).size();
  require(size == shard.bytes, ErrorCode::corrupt_data,
          "{}: {} bytes instead of {}: the shard is damaged, or of another checkpoint",
          path.string(), size, shard.bytes);
}

void require_shard_hash(const std::filesystem::path& path, const ShardFile& shard) {
  const std::string found = hash_file(path, HashKind::sha256).hex;
  require(found == shard.sha256, ErrorCode::corrupt_data,
          "{}: its SHA-256 is {}, expected {}: the shard is damaged, or of another checkpoint",
          path.string(), found, shard.sha256);
}

}  // namespace heed
