// Everything that a run needs to resume bit-identically: training_state.json, the manifest, and in
// the folder training_state the shards that it names, one for each process that wrote them. Runs of
// earlier versions have one file instead, training_state.safetensors.
#pragma once

#include <filesystem>
#include <functional>

#include "comm/group.h"
#include "model/parameters.h"
#include "train/optimizer.h"
#include "train/run_position.h"
#include "train/state_shard.h"

namespace heed {

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
                                std::span<const ArenaRange> own, GptParameters& parameters,
                                Optimizer& optimizer);

// Its position alone. Throws Error{corrupt_data} when it has none.
RunPosition read_run_position(const std::filesystem::path& directory);

// Removes shards that are not of the state: what a killed process left, or the state before it.
void remove_unused_shards(const std::filesystem::path& directory);

}  // namespace heed
