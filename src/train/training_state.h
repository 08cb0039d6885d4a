// Everything that a run needs to resume bit-identically: training_state.json, the manifest, and in
// the folder training_state the shards that it names, one for each process that wrote them. Runs of
// earlier versions have one file instead, training_state.safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"
#include "comm/group.h"
#include "model/parameters.h"
#include "train/batch_order.h"
#include "train/optimizer.h"
#include "train/settings.h"
#include "train/shards.h"

namespace heed {

// How far a run is. Random numbers need no state of their own: they are functions of the seed and
// these counters.
struct RunPosition {
  std::int64_t step = 0;  // steps finished
  bool evaluated = true;  // false: what is due after `step` (evaluation, sample, …) was stopped
  DataPosition data;
  // The lowest validation loss so far or, where BLEU is measured, the lowest of −BLEU; and when.
  double best_cost = std::numeric_limits<double>::infinity();
  std::int64_t best_step = 0;
  double seconds = 0;  // spent training
};

// Whether nothing is left to train: all steps are done, or evaluations no longer improve
// (TrainSettings::early_stop).
bool is_trained(const TrainSettings& settings, const RunPosition& position);

// What a training state is made of: where the run stands, and the shards that its processes wrote.
// The manifest is renamed into place after all shards are on disk, which publishes them at once.
struct ShardFile {
  std::string name;  // in the folder of shards
  std::int64_t bytes = 0;
  std::string sha256;  // hexadecimal
};

struct StateManifest {
  RunPosition position;
  std::string run;           // names the run, as its shards do
  std::int64_t numbers = 0;  // of the arena
  std::vector<ShardFile> shards;
};

std::string state_manifest_text(const StateManifest& manifest);

// Throws Error{corrupt_data} with `source` and the value that is no part of a manifest.
StateManifest parse_state_manifest(std::string_view text, const std::string& source);
StateManifest read_state_manifest(const std::filesystem::path& file);

// What a process has of a training state: the numbers at its ranges of the arena, which become a
// file, a shard. A state may be divided in any way among any number of them.
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

  // The numbers of a range.
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

// The file that says where a run stands; in the directory of its last model, as below.
std::filesystem::path training_state_file(const std::filesystem::path& directory);
bool holds_training_state(const std::filesystem::path& directory);

struct Checkpoint {
  RunPosition position;
  std::string run;                   // its name, the same for every process
  TrainingArrays arrays;             // of this process
  std::function<void()> save_model;  // called by every process, before the state is published
};

// Called by all processes of a group, which write side by side. The last step is one rename, before
// which the checkpoint that was there stays whole. Throws AgreedError{input_output}, which names
// the process whose file could not be written; alone Error{input_output}.
void write_checkpoint(const std::filesystem::path& directory, Group& group,
                      const Checkpoint& checkpoint);

// Reads what a process needs: parameters at its `own` ranges, and the optimizer's moments. Of the
// shards' hashes each process of the group checks a part. Throws Error{corrupt_data} or
// Error{not_found}, naming the file, for a shard that is missing, damaged or of another checkpoint.
RunPosition load_training_state(const std::filesystem::path& directory, const Group& group,
                                std::span<const ArenaRange> own, Parameters& parameters,
                                Optimizer& optimizer);

// Its position alone. Throws Error{corrupt_data} when it has none.
RunPosition read_run_position(const std::filesystem::path& directory);

// Removes shards that are not of the state: what a killed process left, or the state before it.
void remove_unused_shards(const std::filesystem::path& directory);

}  // namespace heed
