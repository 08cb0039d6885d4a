#include "engine/pulled_models.h"

#include "base/directories.h"
#include "download/hub.h"
#include "engine/embedded_models.h"
#include "formats/model_files.h"

namespace heed {

std::filesystem::path default_model_cache() { return cache_directory("models"); }

std::optional<std::filesystem::path> find_pulled_model(const std::string& name) {
  const auto hub_name = find_hub_name(name);
  const std::filesystem::path cache = default_model_cache();
  if (!hub_name || cache.empty()) return std::nullopt;
  std::filesystem::path directory = cache / hub_name->directory_name();
  std::error_code ignored;
  if (!std::filesystem::exists(directory / config_file_name, ignored)) return std::nullopt;
  return directory;
}

bool may_be_pulled(const std::string& name) {
  if (name == starter_name || name == embedded_translator_name) return false;
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
