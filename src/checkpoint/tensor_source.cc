#include "checkpoint/tensor_source.h"

#include <algorithm>
#include <utility>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/shared_bytes.h"

namespace heed {
namespace {

using enum ErrorCode;
namespace fs = std::filesystem;

constexpr const char* single_file = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";
constexpr const char* torch_file = "pytorch_model.bin";
constexpr const char* torch_index_file = "pytorch_model.bin.index.json";
constexpr std::size_t max_index = 100'000'000;  // bytes, as for the header of a file

// A file name, not a path, so that it cannot leave the directory.
bool plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

TensorSource open_shards(const fs::path& index_path) {
  const std::string source = fmt::format("'{}'", index_path.string());
  const auto weight_map = parse_shard_index(read_text_file(index_path, max_index), source);
  std::map<std::string, SafetensorsFile> shards;
  for (const auto& [tensor, file_name] : weight_map) {
    if (shards.contains(file_name)) continue;
    const fs::path path = index_path.parent_path() / file_name;
    require(fs::exists(path), not_found, "{}: tensor '{}' should be in '{}', which is missing",
            source, tensor, path.string());
    shards.emplace(file_name, SafetensorsFile::open_in_parts(path));
  }
  for (const auto& [tensor, file_name] : weight_map) {
    require(shards.at(file_name).find(tensor) != nullptr, corrupt_data,
            "{}: tensor '{}' should be in '{}', which does not contain it", source, tensor,
            file_name);
  }
  std::vector<SafetensorsFile> files;
  std::set<std::string> unlisted;
  for (auto& [file_name, file] : shards) {
    for (const TensorEntry& entry : file.tensors()) {
      const auto mapped = weight_map.find(entry.name);
      if (mapped == weight_map.end()) {
        require(unlisted.insert(entry.name).second, corrupt_data,
                "{}: tensor '{}' is in two files, and the index lists it for none", source,
                entry.name);
        continue;
      }
      require(mapped->second == file_name, corrupt_data,
              "{}: '{}' contains tensor '{}', which the index does not list for this file", source,
              file_name, entry.name);
    }
    files.push_back(std::move(file));
  }
  return TensorSource(std::move(files), std::move(unlisted));
}

// The files that an index of PyTorch's names, each with the tensors that it says.
TensorSource open_torch_shards(const fs::path& index_path) {
  const std::string source = fmt::format("'{}'", index_path.string());
  const auto weight_map = parse_shard_index(read_text_file(index_path, max_index), source);
  std::map<std::string, TorchFile> shards;
  for (const auto& [tensor, file_name] : weight_map) {
    if (!shards.contains(file_name)) {
      const fs::path path = index_path.parent_path() / file_name;
      require(fs::exists(path), not_found, "{}: tensor '{}' should be in '{}', which is missing",
              source, tensor, path.string());
      shards.emplace(file_name, TorchFile::open(path));
    }
    const auto& tensors = shards.at(file_name).tensors();
    require(std::ranges::find(tensors, tensor, &TensorEntry::name) != tensors.end(), corrupt_data,
            "{}: tensor '{}' should be in '{}', which does not contain it", source, tensor,
            file_name);
  }
  std::vector<TorchFile> files;
  for (auto& [file_name, file] : shards) files.push_back(std::move(file));
  return TensorSource(std::move(files));
}

TensorSource open_torch(const fs::path& path) {
  std::vector<TorchFile> files;
  files.push_back(TorchFile::open(path));
  return TensorSource(std::move(files));
}

TensorSource open_single(const fs::path& path) {
  std::vector<SafetensorsFile> files;
  files.push_back(SafetensorsFile::open_in_parts(path));
  return TensorSource(std::move(files));
}

}  // namespace

TensorSource::TensorSource(std::vector<SafetensorsFile> files, std::set<std::string> unlisted)
    : files_(std::move(files)), unlisted_(std::move(unlisted)) {
  check(!files_.empty(), "a tensor source has a file");
  metadata_ = files_.front().metadata();
  for (const SafetensorsFile& file : files_) {
    names_.push_back(file.source());
    for (const TensorEntry& entry : file.tensors()) index_.emplace(entry.name, &entry);
  }
}

TensorEntry entry_of(const GgufTensor& tensor) {
  return {.name = tensor.name,
          .dtype = DType::f32,
          .shape = tensor.shape,
          .bytes = tensor.bytes,
          .blocks = tensor.type,
          .file = tensor.file,
          .begin = tensor.begin};
}

TensorSource::TensorSource(std::vector<GgufFile> parts) : parts_(std::move(parts)) {
  check(!parts_.empty(), "a tensor source has a file");
  for (const GgufFile& part : parts_) {
    names_.push_back(part.source());
    for (const GgufTensor& tensor : part.tensors()) entries_.push_back(entry_of(tensor));
  }
  for (const TensorEntry& entry : entries_) index_.emplace(entry.name, &entry);
}

TensorSource::TensorSource(std::vector<TorchFile> files) : torch_files_(std::move(files)) {
  check(!torch_files_.empty(), "a tensor source has a file");
  for (const TorchFile& file : torch_files_) {
    names_.push_back(file.source());
    for (const TensorEntry& entry : file.tensors()) index_.emplace(entry.name, &entry);
  }
}

std::vector<const TensorEntry*> TensorSource::tensors() const {
  std::vector<const TensorEntry*> all;
  all.reserve(index_.size());
  for (const SafetensorsFile& file : files_) {
    for (const TensorEntry& entry : file.tensors()) all.push_back(&entry);
  }
  for (const TorchFile& file : torch_files_) {
    for (const TensorEntry& entry : file.tensors()) all.push_back(&entry);
  }
  for (const TensorEntry& entry : entries_) all.push_back(&entry);
  return all;
}

const TensorEntry* TensorSource::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : found->second;
}

void TensorSource::release_pages(const TensorEntry& entry, std::span<const std::byte> part) const {
  for (const GgufFile& file : parts_) {
    if (file.find(entry.name) != nullptr) return file.release_pages(part);
  }
}

std::shared_ptr<SharedBytes> TensorSource::shared_memory(std::string contents,
                                                         std::int64_t bytes) const {
  if (!SharedBytes::are_wanted() || parts_.empty()) return nullptr;
  for (const GgufFile& file : parts_) {
    if (file.identity().empty()) return nullptr;
    contents += file.identity() + ' ';
  }
  ContentHasher hasher(HashKind::sha256, static_cast<std::int64_t>(contents.size()));
  hasher.add(contents);
  const std::string name = "heed-" + hasher.finish().hex;
  const auto size = static_cast<std::size_t>(bytes);
  std::shared_ptr<SharedBytes> shared = SharedBytes::find(name, size);
  return shared != nullptr ? shared : SharedBytes::make(name, size);
}

void TensorSource::release_pages() const {
  for (const GgufFile& file : parts_) file.release_pages();
}

const TensorEntry& TensorSource::get(std::string_view name) const {
  const TensorEntry* entry = find(name);
  require(entry != nullptr, corrupt_data, "{}: holds no tensor '{}'", source(), name);
  return *entry;
}

TensorSource open_tensor_source(const fs::path& directory_or_file) {
  if (!fs::is_directory(directory_or_file)) {
    const std::string name = directory_or_file.filename().string();
    if (name.ends_with(".bin.index.json")) return open_torch_shards(directory_or_file);
    if (name.ends_with(".bin")) return open_torch(directory_or_file);
    return name.ends_with(".json") ? open_shards(directory_or_file)
                                   : open_single(directory_or_file);
  }
  for (const char* const name : {single_file, index_file, torch_file, torch_index_file}) {
    if (fs::exists(directory_or_file / name)) return open_tensor_source(directory_or_file / name);
  }
  fail(not_found, "directory '{}' holds none of {}, {}, {} and {}", directory_or_file.string(),
       single_file, index_file, torch_file, torch_index_file);
}

std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     const std::string& source) {
  const Json index = parse_json(text, source);
  require(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object() &&
              !index["weight_map"].empty(),
          corrupt_data, "{}: 'weight_map' is missing, empty or not an object", source);
  std::map<std::string, std::string> weight_map;
  for (const auto& [tensor, file_name] : index["weight_map"].items()) {
    require(file_name.is_string() && plain_file_name(file_name.get_ref<const std::string&>()),
            corrupt_data,
            "{}: the file of tensor '{}' is {}; expected the name of a file in the directory of "
            "the index",
            source, tensor, file_name.dump());
    weight_map.emplace(tensor, file_name.get<std::string>());
  }
  return weight_map;
}

}  // namespace heed
