// A model's tensors by name, from one file or several: safetensors, the parts of a GGUF file,
// or PyTorch's.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/gguf.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/torch_file.h"

namespace heed {

class SharedBytes;

// A tensor of a GGUF file, which must outlive it.
TensorEntry entry_of(const GgufTensor& tensor);

class TensorSource {
 public:
  // `unlisted` are in files whose index does not name them.
  explicit TensorSource(std::vector<SafetensorsFile> files, std::set<std::string> unlisted = {});
  // Their tensors are entries of blocks.
  explicit TensorSource(std::vector<GgufFile> parts);
  // A tensor that is in two of them is that of the first.
  explicit TensorSource(std::vector<TorchFile> files);

  std::vector<const TensorEntry*> tensors() const;       // file by file, in the order of the data
  const TensorEntry* find(std::string_view name) const;  // null when absent
  bool is_unlisted(const std::string& name) const { return unlisted_.contains(name); }
  // Throws Error{corrupt_data} when there is no tensor of that name.
  const TensorEntry& get(std::string_view name) const;
  // Of the first file; none of GGUF, whose metadata has values of many types.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& source() const { return names_.front(); }
  const std::vector<GgufFile>& gguf_parts() const { return parts_; }  // none of other files
  const std::vector<std::string>& files() const { return names_; }    // as messages name them
  // Memory of `bytes` for what is made of a GGUF file, which processes share: sealed where another
  // one made the same `contents` of the same file, else to be written and sealed. Null unless
  // SharedBytes::are_wanted(), for other files, and for one that is not mapped.
  std::shared_ptr<SharedBytes> shared_memory(std::string contents, std::int64_t bytes) const;
  // Takes bytes of a tensor in a part of a GGUF file, or all bytes of all parts, from the memory of
  // this process, if they are mapped: they are read again where they are used again.
  void release_pages(const TensorEntry& entry, std::span<const std::byte> part) const;
  void release_pages() const;

 private:
  std::vector<SafetensorsFile> files_;
  std::vector<GgufFile> parts_;         // or these
  std::vector<TorchFile> torch_files_;  // or these
  std::vector<TensorEntry> entries_;    // of parts_
  std::vector<std::string> names_;      // at least one
  std::map<std::string, std::string> metadata_;
  std::set<std::string> unlisted_;
  std::unordered_map<std::string_view, const TensorEntry*> index_;  // into files_, or entries_
};

// Opens a safetensors file, an index (*.json) with its shards, a file of PyTorch's (*.bin), or a
// directory that contains model.safetensors, else model.safetensors.index.json, else
// pytorch_model.bin, else pytorch_model.bin.index.json. Throws Error{not_found} if neither
// exists, Error{corrupt_data} for an index that contradicts its shards or names a file outside its
// directory (a tensor that it does not name is allowed: is_unlisted()), and what
// SafetensorsFile::open_in_parts and TorchFile::open throw.
TensorSource open_tensor_source(const std::filesystem::path& directory_or_file);

// Returns the weight_map of a shard index: tensor names to names of files in the directory of the
// index.
std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     const std::string& source);

}  // namespace heed
