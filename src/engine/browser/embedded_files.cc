// What heed carries are files that a page fetches when they are asked for: /models/NAME.
#include "engine/embedded_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace heed {
namespace {

const std::filesystem::path models = "/models";

// As long as the program: replies quote from it.
struct Held {
  MappedFile weights;
  std::string config, tokenizer, examples, reading;
};

std::optional<EmbeddedModel> files_of(std::string_view name) {
  static std::map<std::string, Held, std::less<>> all;
  auto found = all.find(name);
  if (found == all.end()) {
    const std::filesystem::path directory = models / name;
    constexpr std::array names{"model.safetensors", "config.json", "tokenizer.json",
                               "examples.json", "reading.json"};
    const bool is_whole = std::ranges::all_of(
        names, [&](const char* file) { return std::filesystem::exists(directory / file); });
    if (!is_whole) return std::nullopt;
    const auto text = [&](const char* file) { return read_text_file(directory / file); };
    Held held{.weights = MappedFile(directory / "model.safetensors"),
              .config = text("config.json"),
              .tokenizer = text("tokenizer.json"),
              .examples = text("examples.json"),
              .reading = text("reading.json")};
    found = all.emplace(name, std::move(held)).first;
  }
  const Held& held = found->second;
  return EmbeddedModel{.config = held.config,
                       .weights = held.weights.bytes(),
                       .tokenizer = held.tokenizer,
                       .examples = held.examples,
                       .reading = held.reading};
}

}  // namespace

bool is_embedded_decoder(std::string_view name) {
  return std::ranges::find(embedded_decoder_names, name) != embedded_decoder_names.end();
}

bool is_embedded_name(std::string_view name) {
  return is_embedded_decoder(name) || name == embedded_translator_name;
}

std::optional<EmbeddedModel> starter_files() { return files_of(starter_name); }
std::optional<EmbeddedModel> english_files() { return files_of(english_name); }
std::optional<EmbeddedModel> translator_files() { return files_of(embedded_translator_name); }

std::optional<EmbeddedModel> find_embedded_model(std::string_view name) {
  return is_embedded_name(name) ? files_of(name) : std::nullopt;
}

std::optional<EmbeddedModel> embedded_model(std::string_view name) {
  if (!is_embedded_name(name)) return std::nullopt;
  std::optional<EmbeddedModel> files = files_of(name);
  require(files.has_value(), ErrorCode::not_found,
          "the files of the model '{}' are not here yet: the page fetches them first", name);
  return files;
}

// The page writes it to /models/recorded, where it stays.
std::span<const EmbeddedFile> recorded_run_files() { return {}; }
std::string_view recorded_run_key() { return {}; }

// They come after the first view: none until the last of them, in the order of their names, is
// there.
std::span<const EmbeddedFile> starter_transcoders_files() {
  static std::map<std::string, std::string> contents;
  static std::vector<EmbeddedFile> files;
  const std::filesystem::path folder = models / "starter-transcoders";
  if (files.empty() && std::filesystem::exists(folder / "names.json")) {
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
      if (!each.is_regular_file()) continue;
      contents[std::filesystem::relative(each.path(), folder).string()] =
          read_text_file(each.path());
    }
    for (const auto& [path, text] : contents) files.push_back({path, text});
  }
  return files;
}
std::string_view starter_transcoders_key() { return {}; }

std::filesystem::path unpack_recorded_run(const std::filesystem::path&) {
  std::filesystem::path directory = models / "recorded";
  return std::filesystem::exists(directory / "run.json") ? directory : std::filesystem::path();
}

}  // namespace heed
