#include "engine/find_config.h"

#include <filesystem>

#include "engine/loaded_model.h"
#include "engine/pulled_models.h"
#include "model/gpt_files.h"
#include "model/presets.h"

namespace heed {

GptConfig find_gpt_config(const std::string& name_or_path) {
  if (is_gpt_preset(name_or_path)) return gpt_preset(name_or_path).config;
  const std::filesystem::path path = name_or_path;
  if (std::filesystem::is_directory(path) || path.extension() == ".safetensors") {
    return read_gpt_config(model_directory(model_path(path)) / config_file_name);
  }
  if (std::filesystem::exists(path)) return read_gpt_config(path);
  if (const auto pulled = find_pulled_model(name_or_path)) {
    return read_gpt_config(*pulled / config_file_name);
  }
  return gpt_preset(name_or_path).config;  // fails with the names there are
}

}  // namespace heed
