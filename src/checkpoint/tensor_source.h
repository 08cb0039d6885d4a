// A model's tensors by name, from one safetensors file or several shards.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/safetensors.h"

namespace heed {

class TensorSource {
 public:
  // `unlisted` are in files whose index does not name them.
  explicit TensorSource(std::vector<SafetensorsFile> files, std::set<std::string> unlisted = {});

  std::vector<const TensorEntry*> tensors() const;       // file by file, in the order of the data
  const TensorEntry* find(std::string_view name) const;  // null when absent
  bool is_unlisted(const std::string& name) const { return unlisted_.contains(name); }
  // Throws Error{corrupt_data} when there is no tensor of that name.
  const TensorEntry& get(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return files_.front().metadata(); }
  const std::string& source() const { return files_.front().source(); }
  std::vector<std::string> files() const;  // all of them, as messages name them

 private:
  std::vector<SafetensorsFile> files_;  // at least one
  std::set<std::string> unlisted_;
  std::unordered_map<std::string_view, const TensorEntry*> index_;  // into files_
};

// Opens a safetensors file, an index (*.json) with its shards, or a directory that contains
// model.safetensors or else model.safetensors.index.json. Throws Error{not_found} if neither
// exists, Error{corrupt_data} for an index that contradicts its shards or names a file outside its
// directory (a tensor that it does not name is allowed: is_unlisted()), and what
// SafetensorsFile::open_in_parts throws.
TensorSource open_tensor_source(const std::filesystem::path& directory_or_file);

// Returns the weight_map of a shard index: tensor names to names of files in the directory of the
// index.
std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     const std::string& source);

}  // namespace heed
