// What a training state is made of: where the run stands, and the shards that its processes wrote.
// The manifest is renamed into place after all shards are on disk, which publishes them at once.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "train/run_position.h"

namespace heed {

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

}  // namespace heed
