#include "engine/known_models.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "download/download_file.h"
#include "engine/embedded_files.h"
#include "engine/pull.h"
#include "formats/config_file.h"
#include "formats/format.h"
#include "formats/model_files.h"
#include "model/parameter_count.h"
#include "tokenizer/reading.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr std::array<PublishedModel, 3> published{
    {{.name = "gpt2",
      .revision = "main",
      .title = "GPT-2",
      .about = "8 million web pages that people had linked to on Reddit, in English",
      .parameters = 124'439'808,
      .bytes = 548'105'171},
     {.name = "EleutherAI/pythia-70m",
      .revision = "main",
      .title = "Pythia 70M",
      .about = "the Pile: books, papers, web pages, code and forums, mostly in English",
      .parameters = 70'426'624,
      .bytes = 166'029'852},
     {.name = "Qwen/Qwen2.5-0.5B",
      .revision = "main",
      .title = "Qwen 0.5B",
      .about = "web pages, books and code in 29 languages, 18 trillion tokens",
      .parameters = 494'032'768,
      .bytes = 988'097'824}}};

constexpr std::string_view stored_weights_ending = ".safetensors";
constexpr std::string_view partial_ending = ".partial";

// Bytes of a directory's weights, whole or being downloaded.
struct Stored {
  std::int64_t whole = 0;
  std::int64_t partial = 0;
};

Stored stored_weights(const fs::path& directory) {
  Stored stored;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    const bool is_partial = name.ends_with(partial_ending);
    if (is_partial) name.resize(name.size() - partial_ending.size());
    if (!name.ends_with(stored_weights_ending) && !name.ends_with(".gguf")) continue;
    std::error_code unknown;
    const std::uintmax_t size = fs::file_size(entry->path(), unknown);
    if (!unknown) (is_partial ? stored.partial : stored.whole) += static_cast<std::int64_t>(size);
  }
  return stored;
}

// "ORG/NAME" of a directory ORG--NAME; empty where no model is pulled into such a one.
std::string name_of_directory(const fs::path& directory) {
  std::string name = directory.filename().string();
  if (const std::size_t mark = name.find("--"); mark != std::string::npos) {
    name.replace(mark, 2, "/");
  }
  const auto hub_name = find_hub_name(name);
  return hub_name && hub_name->directory_name() == directory.filename() ? name : "";
}

KnownModel embedded(std::string_view name, const EmbeddedModel& files) {
  const std::string source = std::string(name) + ": " + config_file_name;
  const Architecture architecture =
      architecture_from_json(parse_config(files.config, source), source);
  return {.name = std::string(name),
          .title = std::string(name),
          .about = parse_reading(files.reading, std::string(name) + ": " + reading_file_name).title,
          .origin = ModelOrigin::embedded,
          .parameters = count_parameters(architecture.decoder()).total,
          .bytes = static_cast<std::int64_t>(files.weights.size())};
}

// `path` is its directory, or the GGUF file in it.
void describe_pulled(KnownModel& model, const fs::path& directory, const fs::path& path) {
  model.origin = ModelOrigin::pulled;
  model.is_here = true;
  model.bytes = stored_weights(directory).whole;
  model.partial = 0;
  try {
    const Architecture architecture = read_architecture(path);
    model.parameters = count_parameters(architecture.decoder()).total;
    if (const auto reading = find_reading(directory)) model.about = reading->title;
  } catch (const std::exception& error) {
    model.damage = error.what();
  }
}

KnownModel of_table(const PublishedModel& model, const fs::path& cache) {
  const fs::path directory = cache / parse_hub_name(model.name).directory_name();
  return {.name = std::string(model.name),
          .title = std::string(model.title),
          .about = std::string(model.about),
          .origin = ModelOrigin::published,
          .parameters = model.parameters,
          .bytes = model.bytes,
          .partial = cache.empty() ? 0 : stored_weights(directory).partial,
          .is_here = false};
}

// Whether it is one decoder, or cannot be read at all.
bool is_shown(const fs::path& directory) {
  try {
    return !is_encoder_decoder_directory(directory);
  } catch (const std::exception&) {
    return true;
  }
}

// They do not change once they are here, and what they have read is long.
std::vector<KnownModel> carried_models() {
  static std::mutex mutex;
  static std::array<std::optional<KnownModel>, embedded_decoder_names.size()> known;
  const std::lock_guard lock(mutex);
  std::vector<KnownModel> models;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!known[i]) {
      const auto files = find_embedded_model(embedded_decoder_names[i]);
      if (files) known[i] = embedded(embedded_decoder_names[i], *files);
    }
    if (known[i]) models.push_back(*known[i]);
  }
  return models;
}

}  // namespace

std::span<const PublishedModel> published_models() { return published; }

const PublishedModel* find_published_model(std::string_view name) {
  const auto found = std::ranges::find(published, name, &PublishedModel::name);
  return found == published.end() ? nullptr : &*found;
}

std::vector<KnownModel> known_models() {
  std::vector<KnownModel> models = carried_models();
  const fs::path cache = default_model_cache();
  std::vector<KnownModel> pulled, absent;
  for (const PublishedModel& model : published) absent.push_back(of_table(model, cache));
  std::vector<fs::path> directories;
  std::error_code error;
  for (fs::directory_iterator entry(cache, error), end; !error && entry != end;
       entry.increment(error)) {
    directories.push_back(entry->path());
  }
  std::ranges::sort(directories);
  for (const fs::path& directory : directories) {
    const std::string name = name_of_directory(directory);
    if (name.empty() || is_embedded_name(name)) continue;
    const std::optional<fs::path> path = find_pulled_model(name);
    if (!path || !is_shown(*path)) continue;
    const auto listed = std::ranges::find(absent, name, &KnownModel::name);
    pulled.push_back(listed != absent.end() ? *listed : KnownModel{.name = name, .title = name});
    if (listed != absent.end()) absent.erase(listed);
    describe_pulled(pulled.back(), directory, *path);
  }
  std::ranges::move(pulled, std::back_inserter(models));
  std::ranges::move(absent, std::back_inserter(models));
  return models;
}

}  // namespace heed
