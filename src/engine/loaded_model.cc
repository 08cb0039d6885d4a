#include "engine/loaded_model.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/memory.h"
#include "engine/embedded_models.h"
#include "engine/end_tokens.h"
#include "engine/pulled_models.h"
#include "formats/model_files.h"
#include "formats/text_ends.h"
#include "generate/generator.h"
#include "tokenizer/tokenizer_files.h"
#include "train/run_directory.h"

namespace heed {
namespace {

std::unique_ptr<Tokenizer> embedded_tokenizer(const EmbeddedModel& files) {
  return parse_tokenizer_json(files.tokenizer, "the built-in model's tokenizer.json");
}

[[noreturn]] void fail_as_translator(const std::string& name) {
  fail(ErrorCode::unsupported,
       "'{}' is a translator (an encoder and a decoder): `heed translate -m {}` runs it", name,
       name);
}

}  // namespace

LoadedModel LoadedModel::with_editor(std::shared_ptr<Editor> editor) const {
  return {.name = name,
          .gpt = gpt.with_editor(std::move(editor)),
          .tokenizer = tokenizer,
          .is_starter = is_starter,
          .cache_type = cache_type,
          .directory = directory,
          .named_end_tokens = named_end_tokens};
}

std::vector<std::int32_t> LoadedModel::end_tokens() const {
  return all_end_tokens(gpt.specification(), tokenizer.get(), named_end_tokens);
}

std::optional<std::int32_t> LoadedModel::beginning_of_text() const {
  if (named_beginning >= 0) return static_cast<std::int32_t>(named_beginning);
  if (tokenizer != nullptr && tokenizer->beginning_of_text()) return tokenizer->beginning_of_text();
  const std::int64_t end = gpt.specification().end_of_text;
  if (end >= 0) return static_cast<std::int32_t>(end);
  return tokenizer != nullptr ? tokenizer->end_of_text() : std::nullopt;
}

const Tokenizer& LoadedModel::require_tokenizer() const {
  require(tokenizer != nullptr, ErrorCode::not_found,
          "'{}' has no tokenizer (tokenizer.json, or vocab.json and merges.txt); give token ids "
          "instead of text",
          name);
  return *tokenizer;
}

std::vector<std::int32_t> LoadedModel::encode(std::string_view text) const {
  // An encoder reads a text between the tokens around it; a decoder goes on with it.
  const bool is_encoder = gpt.specification().role == StackRole::encoder;
  std::vector<std::int32_t> ids =
      require_tokenizer().encode(text, {.add_beginning = true, .add_ending = is_encoder});
  require(!text.empty() && !ids.empty(), ErrorCode::invalid_argument, "the text is empty");
  return ids;
}

std::vector<std::int32_t> LoadedModel::encode_part(std::string_view text) const {
  std::vector<std::int32_t> ids = require_tokenizer().encode(text, {.continues = true});
  require(!ids.empty(), ErrorCode::invalid_argument, "the text is empty");
  return ids;
}

std::string LoadedModel::token_bytes(std::int32_t id) const {
  const bool known = tokenizer != nullptr && id >= 0 && id < tokenizer->vocabulary_size();
  return known ? tokenizer->token_bytes(id) : fmt::format("#{}", id);
}

std::vector<std::string> LoadedModel::token_bytes(std::span<const std::int32_t> ids) const {
  std::vector<std::string> bytes;
  for (const std::int32_t id : ids) bytes.push_back(token_bytes(id));
  return bytes;
}

std::vector<std::string> LoadedModel::text_pieces(std::span<const std::int32_t> ids) const {
  std::vector<std::string> pieces = token_bytes(ids);
  if (tokenizer == nullptr) return pieces;
  const std::vector<std::int32_t>& before = tokenizer->text_template().before;
  std::size_t first = 0;
  while (first < ids.size() && first < before.size() && ids[first] == before[first]) {
    pieces[first++].clear();
  }
  const bool known =
      first < ids.size() && ids[first] >= 0 && ids[first] < tokenizer->vocabulary_size();
  if (known) pieces[first] = tokenizer->decode(ids.subspan(first, 1));
  return pieces;
}

LoadedModel load_model(const std::string& name_or_path) {
  if (name_or_path == embedded_translator_name) fail_as_translator(name_or_path);
  if (const auto files = embedded_model(name_or_path)) {
    return {.name = name_or_path,
            .gpt = load_transformer(StacksWanted::one,
                                    ModelBytes{"the starter model", files->config, files->weights}),
            .tokenizer = embedded_tokenizer(*files),
            .is_starter = true};
  }
  const std::filesystem::path path = model_path(name_or_path);
  require(!std::filesystem::is_directory(path) || std::filesystem::exists(path / config_file_name),
          ErrorCode::not_found, "'{}' is not a model: it has no {}", path.string(),
          config_file_name);
  if (is_encoder_decoder_directory(path)) fail_as_translator(name_or_path);
  LoadedModel model{
      .name = {}, .gpt = load_transformer(StacksWanted::one, path), .tokenizer = nullptr};
  model.name = model_name(name_or_path);
  const std::filesystem::path directory = model_directory(path);
  if (holds_tokenizer(directory)) model.tokenizer = load_tokenizer(directory);
  model.directory = directory;
  const std::int64_t vocabulary = model.gpt.specification().vocabulary_size;
  model.named_end_tokens = named_end_tokens(directory, vocabulary, model.tokenizer.get());
  model.named_beginning = read_beginning_of_text(read_model_fields(directory), vocabulary);
  return model;
}

std::unique_ptr<Tokenizer> load_model_tokenizer(const std::string& name_or_path) {
  if (const auto files = embedded_model(name_or_path)) return embedded_tokenizer(*files);
  // The file of a model's weights stands for its directory.
  const std::filesystem::path path = model_path(name_or_path);
  return load_tokenizer(path.extension() == ".safetensors" ? model_directory(path) : path);
}

std::filesystem::path model_path(const std::filesystem::path& path) {
  const RunDirectory run(path);
  const bool is_model = std::filesystem::exists(path / config_file_name);
  if (!is_model && run.holds_a_run()) return run.result();
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
  if (name_or_path == starter_name || name_or_path == embedded_translator_name) {
    return name_or_path;
  }
  const std::filesystem::path directory =
      std::filesystem::canonical(model_directory(model_path(name_or_path)));
  if (std::string pulled = pulled_model_name(directory); !pulled.empty()) return pulled;
  std::string own = directory.filename().string();
  for (const std::filesystem::path& above :
       {directory.parent_path(), directory.parent_path().parent_path()}) {
    const RunDirectory run(above);
    const bool is_checkpoint = directory == run.last() || directory == run.best() ||
                               directory == run.average() ||
                               directory.parent_path() == run.checkpoints();
    if (!is_checkpoint || !run.holds_a_run()) continue;
    std::string name = above.filename().string();
    return directory == run.last() ? name : name + "@" + own;
  }
  return own;
}

void pack_for_prompts(LoadedModel& model) {
  const std::optional<std::int64_t> available = available_memory();
  if (available && Parameters::packed_bytes(model.gpt.specification()) > *available / 4) return;
  model.gpt.parameters().pack();
}

}  // namespace heed
