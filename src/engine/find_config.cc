#include "engine/find_config.h"

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "engine/loaded_model.h"
#include "engine/pulled_models.h"
#include "formats/config_file.h"
#include "formats/model_files.h"
#include "model/presets.h"
#include "train/presets.h"

namespace heed {
namespace {

// The config.json of a model that is on disk; nothing for a name that no model there has.
std::optional<std::filesystem::path> find_config_file(const std::string& name_or_path) {
  const std::filesystem::path path = name_or_path;
  if (std::filesystem::is_directory(path) || path.extension() == ".safetensors") {
    return model_directory(model_path(path)) / config_file_name;
  }
  if (std::filesystem::exists(path)) return path;
  const auto pulled = find_pulled_model(name_or_path);
  return pulled ? std::optional(*pulled / config_file_name) : std::nullopt;
}

}  // namespace

StackSpecification find_gpt_config(const std::string& name_or_path) {
  if (is_model_preset(name_or_path)) return model_preset(name_or_path).config;
  if (const auto file = find_config_file(name_or_path)) return read_gpt_config(*file);
  return model_preset(name_or_path).config;  // fails with the names there are
}

Architecture find_translator_architecture(const std::string& name_or_path) {
  const std::filesystem::path path = name_or_path;
  Architecture found;
  if (std::filesystem::is_directory(path) || find_pulled_model(name_or_path)) {
    const std::filesystem::path model = model_path(path);
    found =
        is_encoder_decoder_directory(model)
            ? read_architecture(model)
            : Architecture{.stacks = {read_gpt_config(model_directory(model) / config_file_name)}};
  } else {
    found = find_architecture(name_or_path);
  }
  require(found.is_encoder_decoder(), ErrorCode::unsupported,
          "'{}' has no encoder and decoder: expected a translator, such as multi30k-en-de, "
          "translator-tiny or transformer-base",
          name_or_path);
  return found;
}

Architecture find_architecture(const std::string& name_or_path) {
  if (const auto* preset = find_architecture_preset(name_or_path)) return preset->architecture;
  if (is_model_preset(name_or_path)) return {.stacks = {model_preset(name_or_path).config}};
  if (const auto file = find_config_file(name_or_path)) {
    return architecture_from_json(read_config_document(*file), file->string());
  }
  require(is_run_preset(name_or_path), ErrorCode::not_found,
          "there is no config named '{}'; expected one of {}, {}", name_or_path, run_preset_names(),
          model_preset_names());
  const TrainSettings settings = train_preset(name_or_path);
  if (settings.task == Task::pairs) return pair_architecture(settings);
  return {.stacks = {settings.model}};
}

}  // namespace heed
