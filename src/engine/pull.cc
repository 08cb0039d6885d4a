#include "engine/pull.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/directories.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/tensor_source.h"
#include "download/download_file.h"
#include "download/hub.h"
#include "engine/embedded_files.h"
#include "formats/gguf_families.h"
#include "formats/gguf_fields.h"
#include "formats/gguf_files.h"
#include "formats/model_files.h"
#include "tokenizer/tokenizer.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr const char* index_file_name = "model.safetensors.index.json";
constexpr std::size_t max_index = 100'000'000;  // bytes, as for open_tensor_source
constexpr std::string_view weights_ending = ".safetensors";
constexpr std::string_view gguf_ending = ".gguf";

// Whether it describes a model or its tokenizer; the other companions are the tokenizer itself.
bool is_description(std::string_view name) {
  return std::ranges::find(description_file_names, name) != std::end(description_file_names);
}

// The part of a path in a repository that names the file here.
std::string_view file_name_of(std::string_view path) {
  return path == pooling_file_name ? path : path.substr(path.rfind('/') + 1);
}

// One pull: the repository as the hub lists it, and the directory that it goes to.
class Pull {
 public:
  Pull(HubName name, const PullOptions& options)
      : options_(options), hub_(options.hub), name_(std::move(name)) {}

  PulledModel run();

 private:
  const HubFile& require_file(const std::string& name) const;
  void fetch(const HubFile& file);
  void fetch_if_listed(const std::string& name);
  void fetch_config();
  void fetch_tokenizer();
  void fetch_weights();
  std::vector<const HubFile*> gguf_files() const;
  void fetch_gguf();
  std::vector<const HubFile*> shards() const;
  void require_space(const std::vector<const HubFile*>& files) const;
  void replace_files();
  void remove_others() const;

  // Where a file is that was fetched: at its place or, if it is new, still partial.
  fs::path fetched_path(const std::string& name) const;
  bool is_whole(const HubFile& file) const;
  fs::path local_path(const HubFile& file) const { return directory_ / file_name_of(file.name); }

  const PullOptions& options_;
  Hub hub_;
  HubName name_;
  HubRepository repository_;
  fs::path directory_;
  std::vector<PulledFile> files_;            // fetched so far
  std::string key_file_ = config_file_name;  // without which there is no model: renamed last
};

const HubFile& Pull::require_file(const std::string& name) const {
  const HubFile* const file = repository_.find(name);
  require(file != nullptr, ErrorCode::unsupported,
          "'{}' has no {}: heed reads models in the Hugging Face layout with safetensors",
          name_.repository, name);
  return *file;
}

bool Pull::is_whole(const HubFile& file) const {
  const fs::path path = local_path(file);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  if (fs::file_size(path, error) != static_cast<std::uintmax_t>(file.size) || error) return false;
  return hash_file(path, file.hash.kind,
                   {.progress = options_.hub.progress,
                    .what = "verifying " + file.name,
                    .stop = options_.hub.stop}) == file.hash;
}

void Pull::fetch(const HubFile& file) {
  require(file.is_verifiable(), ErrorCode::corrupt_data,
          "{} gives no size and hash of {} in '{}', so it cannot be verified",
          options_.hub.settings.endpoint, file.name, name_.repository);
  const bool is_new = !is_whole(file);
  if (is_new) {
    make_directory(local_path(file).parent_path());
    hub_.download(name_, repository_.commit, file, local_path(file));
  }
  files_.push_back({.file = file, .is_new = is_new});
}

void Pull::fetch_if_listed(const std::string& name) {
  if (const HubFile* const file = repository_.find(name)) fetch(*file);
}

fs::path Pull::fetched_path(const std::string& name) const {
  const auto found = std::ranges::find_if(
      files_, [&](const PulledFile& file) { return file_name_of(file.file.name) == name; });
  check(found != files_.end(), "a file is fetched before it is read");
  return found->is_new ? partial_path(directory_ / name) : directory_ / name;
}

// A model that heed cannot read is refused before its weights are downloaded.
void Pull::fetch_config() {
  fetch(require_file(config_file_name));
  constexpr std::size_t max_config = std::size_t{16} << 20;
  const std::string source = name_.repository + ": " + config_file_name;
  architecture_from_json(
      parse_config(read_text_file(fetched_path(config_file_name), max_config), source), source);
}

void Pull::fetch_tokenizer() {
  if (repository_.find(tokenizer_file_name) != nullptr) return fetch_if_listed(tokenizer_file_name);
  // Without any of these files a model takes token ids. vocab.json alone says too little.
  const auto is_listed = [&](const char* name) { return repository_.find(name) != nullptr; };
  const bool has_vocabulary =
      is_listed("vocab.json") && (is_listed("merges.txt") || is_listed("source.spm"));
  for (const std::string_view name : tokenizer_file_names) {
    const bool needs_another = name == "vocab.json" || name == "merges.txt";
    if (is_description(name) || (needs_another && !has_vocabulary)) continue;
    fetch_if_listed(std::string(name));
  }
}

// The files that the index names, which are at its side in the repository.
std::vector<const HubFile*> Pull::shards() const {
  const std::string source = name_.repository + ": " + index_file_name;
  const auto weight_map =
      parse_shard_index(read_text_file(fetched_path(index_file_name), max_index), source);
  std::set<std::string> names;
  for (const auto& [tensor, file] : weight_map) names.insert(file);
  std::vector<const HubFile*> files;
  for (const std::string& name : names) {
    require(name.ends_with(weights_ending), ErrorCode::corrupt_data,
            "{}: the shard '{}' is not a {} file", source, name, weights_ending);
    const HubFile* const file = repository_.find(name);
    require(file != nullptr, ErrorCode::corrupt_data, "{}: the shard '{}' is not in the repository",
            source, name);
    files.push_back(file);
  }
  return files;
}

void Pull::require_space(const std::vector<const HubFile*>& files) const {
  std::int64_t missing = 0;
  for (const HubFile* const file : files) {
    const fs::path path = local_path(*file);
    const auto size = static_cast<std::uintmax_t>(file->size);
    std::error_code error;
    // Without a file, file_size() is the largest number.
    if (fs::file_size(path, error) == size) continue;
    const std::uintmax_t partial = fs::file_size(partial_path(path), error);
    missing += file->size - (partial <= size ? static_cast<std::int64_t>(partial) : 0);
  }
  require_free_space(directory_, missing);
}

void Pull::fetch_weights() {
  std::vector<const HubFile*> files;
  if (repository_.find(weights_file_name) == nullptr &&
      repository_.find(index_file_name) != nullptr) {
    fetch_if_listed(index_file_name);
    files = shards();
  } else {
    files.push_back(&require_file(weights_file_name));
  }
  require_space(files);
  for (const HubFile* const file : files) fetch(*file);
}

// Whether it is one of the files of these weights: "model-Q4_K_M.gguf", "model.q4_k_m.gguf",
// "Q4_K_M/model-Q4_K_M-00001-of-00002.gguf".
bool is_of_weights(std::string_view path, std::string_view weights) {
  if (!path.ends_with(gguf_ending)) return false;
  const std::string stem = gguf_model_name(std::string(file_name_of(path)));
  if (stem.size() < weights.size()) return false;
  const std::size_t begin = stem.size() - weights.size();
  const bool ends_with =
      std::ranges::equal(std::string_view(stem).substr(begin), weights, [](char left, char right) {
        return left == right || (left >= 'a' && left <= 'z' && left - 'a' + 'A' == right);
      });
  return ends_with &&
         (begin == 0 || stem[begin - 1] == '-' || stem[begin - 1] == '.' || stem[begin - 1] == '_');
}

// The file of the wanted weights, or its parts in order.
std::vector<const HubFile*> Pull::gguf_files() const {
  std::vector<const HubFile*> files;
  std::set<std::string> models, others;
  for (const HubFile& file : repository_.files) {
    const std::string name(file_name_of(file.name));
    if (!name.ends_with(gguf_ending)) continue;
    if (!is_of_weights(file.name, name_.weights)) {
      others.insert(name);
      continue;
    }
    models.insert(gguf_model_name(name));
    files.push_back(&file);
  }
  require(!files.empty(), ErrorCode::not_found, "'{}' has no GGUF file of {}; it has {}",
          name_.repository, name_.weights,
          others.empty() ? std::string("none") : fmt::format("{}", fmt::join(others, ", ")));
  require(models.size() == 1, ErrorCode::unsupported,
          "'{}' has GGUF files of several models in {}: {}", name_.repository, name_.weights,
          fmt::join(models, ", "));
  std::ranges::sort(files, {}, &HubFile::name);
  return files;
}

// The first part is read before it has its name: other architectures are refused.
void Pull::fetch_gguf() {
  const std::vector<const HubFile*> files = gguf_files();
  key_file_ = file_name_of(files.front()->name);
  require_space(files);
  for (const HubFile* const file : files) fetch(*file);
  const GgufFile first = GgufFile::open(fetched_path(key_file_));
  const GgufFields fields(first);
  constexpr std::string_view architecture = "general.architecture";
  gguf_family(fields.need(architecture, fields.find_text(architecture)), first.source());
}

// Files of heed's kinds that are not of this commit, and downloads that nothing continues.
void Pull::remove_others() const {
  std::set<std::string> wanted;
  for (const PulledFile& file : files_) wanted.emplace(file_name_of(file.file.name));
  std::vector<fs::path> others;
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_partial = name.ends_with(".partial") || name.ends_with(".partial.json");
    const bool is_finished_partial =
        name.ends_with(".partial") && wanted.contains(name.substr(0, name.size() - 8));
    if (is_partial && !is_finished_partial) others.push_back(entry->path());
    const bool is_ours = name.ends_with(weights_ending) || name.ends_with(gguf_ending) ||
                         name == index_file_name ||
                         std::ranges::count(companion_file_names(), name) > 0;
    if (is_ours && !wanted.contains(name)) others.push_back(entry->path());
  }
  const fs::path pooling = directory_ / pooling_file_name;
  if (!wanted.contains(pooling_file_name)) {
    for (const fs::path& path : {pooling, partial_path(pooling)}) {
      if (fs::exists(path, error)) others.push_back(path);
    }
  }
  for (const fs::path& path : others) remove_file(path);
}

// The config, or the first part of a GGUF file, is away while the others are replaced, and comes
// last.
void Pull::replace_files() {
  const fs::path key = directory_ / key_file_;
  const bool any_new =
      std::ranges::any_of(files_, [](const PulledFile& file) { return file.is_new; });
  if (!any_new) return remove_others();
  if (fetched_path(key_file_) == key) {
    std::error_code error;
    fs::rename(key, partial_path(key), error);
    require(!error, ErrorCode::input_output, "cannot rename '{}': {}", key.string(),
            error.message());
  } else {
    remove_file(key);
  }
  remove_others();
  for (const PulledFile& file : files_) {
    const fs::path path = local_path(file.file);
    if (file.is_new && path != key) keep_partial_file(path);
  }
  keep_partial_file(key);
}

PulledModel Pull::run() {
  repository_ = hub_.find(name_);
  directory_ = options_.cache / name_.directory_name();
  OutputDirectory output(directory_);
  const DirectoryLock lock(directory_);
  const bool is_gguf = !name_.weights.empty();
  if (is_gguf) {
    fetch_gguf();
  } else {
    fetch_config();
    fetch_tokenizer();
    for (const std::string_view name : description_file_names) fetch_if_listed(std::string(name));
    fetch_weights();
  }
  replace_files();
  output.keep();
  return {.name = name_,
          .commit = repository_.commit,
          .directory = is_gguf ? directory_ / key_file_ : directory_,
          .files = std::move(files_)};
}

}  // namespace

PulledModel pull_model(const std::string& name, const PullOptions& options) {
  require(!is_embedded_name(name), ErrorCode::invalid_argument,
          "'{}' is built into heed; there is nothing to download", name);
  HubName hub_name = parse_hub_name(name);
  require(!options.cache.empty(), ErrorCode::not_found, "there is no place for models: {}",
          no_cache_directory);
  return Pull(std::move(hub_name), options).run();
}

namespace {

// By name: of a model in parts, the first.
std::optional<fs::path> first_gguf_file(const fs::path& directory) {
  std::optional<fs::path> first;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (is_gguf_path(path) && (!first || path < *first)) first = path;
  }
  return first;
}

}  // namespace

std::filesystem::path default_model_cache() { return cache_directory("models"); }

std::optional<std::filesystem::path> find_pulled_model(const std::string& name) {
  const auto hub_name = find_hub_name(name);
  const std::filesystem::path cache = default_model_cache();
  if (!hub_name || cache.empty()) return std::nullopt;
  std::filesystem::path directory = cache / hub_name->directory_name();
  std::error_code ignored;
  if (!hub_name->weights.empty()) return first_gguf_file(directory);
  if (!std::filesystem::exists(directory / config_file_name, ignored)) return std::nullopt;
  return directory;
}

bool may_be_pulled(const std::string& name) {
  if (is_embedded_name(name)) return false;
  if (!find_hub_name(name)) return false;
  for (const char* ending : {".safetensors", ".json", ".txt", ".gguf", ".bin"}) {
    if (name.ends_with(ending)) return false;
  }
  return true;
}

std::string pulled_model_name(const std::filesystem::path& directory) {
  const std::filesystem::path cache = default_model_cache();
  std::error_code error;
  if (cache.empty() || !std::filesystem::equivalent(directory.parent_path(), cache, error)) {
    return {};
  }
  const std::string name = directory.filename().string();
  const std::size_t organisation = name.find("--");
  return organisation == std::string::npos ? name : name.substr(organisation + 2);
}

}  // namespace heed
