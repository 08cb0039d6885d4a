#include "train/training_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace heed {
namespace {

constexpr std::size_t max_manifest = std::size_t{1} << 26;  // bytes: of 300,000 shards

// The members of an object, with errors that name the file.
class Members {
 public:
  Members(const Json& object, const std::string& source) : object_(object), source_(source) {
    require(object.is_object(), ErrorCode::corrupt_data, "{}: expected an object, not {}", source,
            shown_json(object));
  }

  bool has(const char* key) const { return find_json_member(object_, key) != nullptr; }
  const Json& at(const char* key) const {
    const Json* const value = find_json_member(object_, key);
    require(value != nullptr, ErrorCode::corrupt_data, "{}: the manifest has no '{}'", source_,
            key);
    return *value;
  }
  std::int64_t count(const char* key) const { return json_integer(at(key), label(key), 0); }
  double real(const char* key) const { return json_real(at(key), label(key)); }
  bool boolean(const char* key) const { return json_boolean(at(key), label(key)); }
  std::string text(const char* key) const { return json_string(at(key), label(key)); }

 private:
  JsonLabel label(const char* key) const { return {source_ + ": '" + key + "'"}; }

  const Json& object_;
  const std::string& source_;
};

ShardFile read_shard(const Json& json, const std::string& source) {
  const Members members(json, source);
  ShardFile shard{.name = members.text("file"),
                  .bytes = members.count("bytes"),
                  .sha256 = members.text("sha256")};
  const bool is_name = !shard.name.empty() && shard.name.find('/') == std::string::npos &&
                       shard.name.find('\0') == std::string::npos && shard.name.front() != '.';
  require(is_name, ErrorCode::corrupt_data, "{}: '{}' is not the name of a shard", source,
          shard.name);
  require(is_hash(HashKind::sha256, shard.sha256), ErrorCode::corrupt_data,
          "{}: '{}' is not a SHA-256 in hexadecimal", source, shard.sha256);
  return shard;
}

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

// Training states of earlier versions: one file, of the whole arena, with more tensors.

constexpr const char* counters_name = "counters";  // (4) i64: step, epoch, index, best_step
constexpr const char* measures_name = "measures";  // (2) f64: best_cost, seconds
constexpr const char* unevaluated_name = "unevaluated_step";  // (1) i64; absent: it is evaluated

const TensorEntry& entry_of(const SafetensorsFile& file, const char* name, DType dtype,
                            std::int64_t size) {
  const TensorEntry* entry = file.find(name);
  require(entry != nullptr, ErrorCode::corrupt_data, "{}: the training state has no '{}'",
          file.source(), name);
  require(entry->dtype == dtype && entry->shape == Shape{size}, ErrorCode::corrupt_data,
          "{}: '{}' is {} {}, but this run needs {} ({})", file.source(), name,
          dtype_name(entry->dtype), entry->shape.text(), dtype_name(dtype), size);
  return *entry;
}

using Counters = std::array<std::int64_t, 4>;

Counters read_counters(const SafetensorsFile& file) {
  Counters counters;
  std::memcpy(counters.data(), entry_of(file, counters_name, DType::i64, 4).bytes.data(),
              sizeof(counters));
  for (const std::int64_t counter : counters) {
    require(counter >= 0, ErrorCode::corrupt_data, "{}: a negative counter {}", file.source(),
            counter);
  }
  return counters;
}

RunPosition read_position(const SafetensorsFile& file) {
  const Counters counters = read_counters(file);
  double measures[2];
  std::memcpy(measures, entry_of(file, measures_name, DType::f64, 2).bytes.data(),
              sizeof(measures));
  return {.step = counters[0],
          .evaluated = file.find(unevaluated_name) == nullptr,
          .data = {.epoch = counters[1], .index = counters[2]},
          .best_cost = measures[0],
          .best_step = counters[3],
          .seconds = measures[1]};
}

std::span<const std::byte> float_bytes(const SafetensorsFile& file, const char* name,
                                       std::size_t size) {
  return entry_of(file, name, DType::f32, static_cast<std::int64_t>(size)).bytes;
}

// Parameters at the `own` ranges, and the optimizer's moments. Throws Error{corrupt_data} when the
// file does not fit the parameters.
RunPosition load_earlier_state(const std::filesystem::path& path, std::span<const ArenaRange> own,
                               Parameters& parameters, Optimizer& optimizer) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const std::size_t size = parameters.all().size();
  const auto values = float_bytes(file, parameters_name, size);
  for (const ArenaRange& range : own) {
    std::memcpy(parameters.all().data() + range.begin, values.data() + range.begin * sizeof(float),
                range.size() * sizeof(float));
  }
  optimizer.set_moments({0, size}, float_bytes(file, first_moment_name, size),
                        float_bytes(file, second_moment_name, size));
  return read_position(file);
}

// Its position alone. Throws Error{corrupt_data} when it has none.
RunPosition read_earlier_position(const std::filesystem::path& file) {
  return read_position(SafetensorsFile::open(file));
}

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
                                std::span<const ArenaRange> own, Parameters& parameters,
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

bool is_trained(const TrainSettings& settings, const RunPosition& position) {
  if (position.step >= settings.steps) return true;
  if (settings.early_stop <= 0 || settings.evaluate_every <= 0 ||
      !std::isfinite(position.best_cost))
    return false;
  return (position.step - position.best_step) / settings.evaluate_every >= settings.early_stop;
}

std::string state_manifest_text(const StateManifest& manifest) {
  const RunPosition& position = manifest.position;
  OrderedJson json;
  json["run"] = manifest.run;
  json["step"] = position.step;
  json["evaluated"] = position.evaluated;
  json["epoch"] = position.data.epoch;
  json["index"] = position.data.index;
  json["best_cost"] = json_number(position.best_cost);  // null: none yet
  json["best_step"] = position.best_step;
  json["seconds"] = position.seconds;
  json["numbers"] = manifest.numbers;
  json["shards"] = OrderedJson::array();
  for (const ShardFile& shard : manifest.shards) {
    json["shards"].push_back(
        {{"file", shard.name}, {"bytes", shard.bytes}, {"sha256", shard.sha256}});
  }
  return json.dump(2) + "\n";
}

StateManifest parse_state_manifest(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  const Members members(json, source);
  StateManifest manifest{
      .position = {.step = members.count("step"),
                   .evaluated = members.boolean("evaluated"),
                   .data = {.epoch = members.count("epoch"), .index = members.count("index")},
                   .best_step = members.count("best_step"),
                   .seconds = members.real("seconds")},
      .run = members.text("run"),
      .numbers = members.count("numbers"),
      .shards = {}};
  if (members.has("best_cost")) manifest.position.best_cost = members.real("best_cost");
  const Json& shards = members.at("shards");
  require(shards.is_array() && !shards.empty(), ErrorCode::corrupt_data,
          "{}: 'shards' must be a list of files, not {}", source, shown_json(shards));
  for (const Json& shard : shards) manifest.shards.push_back(read_shard(shard, source));
  return manifest;
}

StateManifest read_state_manifest(const std::filesystem::path& file) {
  return parse_state_manifest(read_text_file(file, max_manifest), file.string());
}

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
