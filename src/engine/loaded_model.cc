#include "engine/loaded_model.h"

#include <filesystem>

#include "base/error.h"
#include "base/memory.h"
#include "engine/pulled_models.h"
#include "engine/starter.h"
#include "model/gpt_files.h"
#include "tokenizer/tokenizer_files.h"
#include "train/run_directory.h"

namespace heed {
namespace {

StarterFiles require_starter() {
  const auto files = starter_files();
  require(files.has_value(), ErrorCode::not_found,
          "this build of heed has no starter model (models/starter was missing when it was built); "
          "name a model directory instead");
  return *files;
}

bool has_tokenizer(const std::filesystem::path& directory) {
  return std::filesystem::exists(directory / tokenizer_file_name) ||
         std::filesystem::exists(directory / "vocab.json");
}

std::unique_ptr<Tokenizer> starter_tokenizer(const StarterFiles& files) {
  return parse_tokenizer_json(files.tokenizer, "the starter's tokenizer.json");
}

}  // namespace

const Tokenizer& LoadedModel::require_tokenizer() const {
  require(tokenizer != nullptr, ErrorCode::not_found,
          "'{}' has no tokenizer (tokenizer.json, or vocab.json and merges.txt); give token ids "
          "instead of text",
          name);
  return *tokenizer;
}

std::vector<std::int32_t> LoadedModel::encode(std::string_view text) const {
  std::vector<std::int32_t> ids = require_tokenizer().encode(text);
  require(!ids.empty(), ErrorCode::invalid_argument, "the text is empty");
  return ids;
}

std::string LoadedModel::token_bytes(std::int32_t id) const {
  const bool known = tokenizer != nullptr && id >= 0 && id < tokenizer->vocabulary_size();
  return known ? tokenizer->token_bytes(id) : "#" + std::to_string(id);
}

std::vector<std::string> LoadedModel::token_bytes(std::span<const std::int32_t> ids) const {
  std::vector<std::string> bytes;
  for (const std::int32_t id : ids) bytes.push_back(token_bytes(id));
  return bytes;
}

LoadedModel load_model(const std::string& name_or_path) {
  if (name_or_path == starter_name) {
    const StarterFiles files = require_starter();
    return {.name = name_or_path,
            .gpt = load_gpt(GptBytes{"the starter model", files.config, files.weights}),
            .tokenizer = starter_tokenizer(files),
            .is_starter = true};
  }
  const std::filesystem::path path = model_path(name_or_path);
  require(!std::filesystem::is_directory(path) || std::filesystem::exists(path / config_file_name),
          ErrorCode::not_found, "'{}' is not a model: it has no {}", path.string(),
          config_file_name);
  LoadedModel model{.name = {}, .gpt = load_gpt(path), .tokenizer = nullptr};
  model.name = model_name(name_or_path);
  const std::filesystem::path directory = model_directory(path);
  if (has_tokenizer(directory)) model.tokenizer = load_tokenizer(directory);
  return model;
}

std::unique_ptr<Tokenizer> load_model_tokenizer(const std::string& name_or_path) {
  if (name_or_path == starter_name) return starter_tokenizer(require_starter());
  // The file of a model's weights stands for its directory.
  const std::filesystem::path path = model_path(name_or_path);
  return load_tokenizer(path.extension() == ".safetensors" ? model_directory(path) : path);
}

std::filesystem::path model_path(const std::filesystem::path& path) {
  const RunDirectory run(path);
  const bool is_model = std::filesystem::exists(path / config_file_name);
  if (!is_model && run.holds_a_run()) return run.last();
  if (std::filesystem::exists(path)) return path;
  const std::string name = path.string();
  if (auto pulled = find_pulled_model(name)) return *std::move(pulled);
  require(
      !may_be_pulled(name), ErrorCode::not_found,
      "there is no model '{0}'; if it is published under this name, `heed pull {0}` downloads it",
      name);
  return path;
}

std::string model_name(const std::string& name_or_path) {
  if (name_or_path == starter_name) return name_or_path;
  const std::filesystem::path directory =
      std::filesystem::canonical(model_directory(model_path(name_or_path)));
  if (std::string pulled = pulled_model_name(directory); !pulled.empty()) return pulled;
  std::string own = directory.filename().string();
  for (const std::filesystem::path& above :
       {directory.parent_path(), directory.parent_path().parent_path()}) {
    const RunDirectory run(above);
    const bool is_checkpoint = directory == run.last() || directory == run.best() ||
                               directory.parent_path() == run.checkpoints();
    if (!is_checkpoint || !run.holds_a_run()) continue;
    std::string name = above.filename().string();
    return directory == run.last() ? name : name + "@" + own;
  }
  return own;
}

void pack_for_prompts(LoadedModel& model) {
  const std::optional<std::int64_t> available = available_memory();
  if (available && GptParameters::packed_bytes(model.gpt.config()) > *available / 4) return;
  model.gpt.parameters().pack();
}

}  // namespace heed
