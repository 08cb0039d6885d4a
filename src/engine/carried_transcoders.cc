#include "engine/carried_transcoders.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "engine/embedded_files.h"

namespace heed {
namespace {

constexpr std::string_view names_file = "names.json";

std::string_view contents_of(std::span<const EmbeddedFile> files, std::string_view path) {
  const auto found = std::ranges::find(files, path, &EmbeddedFile::path);
  require(found != files.end(), ErrorCode::corrupt_data, "the starter's transcoders lack {}", path);
  return found->contents;
}

std::vector<SparseDictionary> dictionaries_of(std::span<const EmbeddedFile> files,
                                              const DictionaryOptions& options) {
  std::vector<SparseDictionary> all;
  for (const EmbeddedFile& file : files) {  // layer_0 first
    if (!file.path.ends_with(saelens_config_name)) continue;
    const std::string folder(file.path.substr(0, file.path.rfind('/') + 1));
    const std::string source = "the starter's transcoders, " + folder;
    const std::string_view weights = contents_of(files, folder + saelens_weights_name);
    const SafetensorsFile tensors =
        SafetensorsFile::parse(std::as_bytes(std::span(weights.data(), weights.size())), source);
    all.emplace_back(std::make_shared<const Dictionary>(
        saelens_dictionary(parse_json(file.contents, source), tensors.tensors(), source, options)));
  }
  return all;
}

std::shared_ptr<const CarriedTranscoders> read_all(std::span<const EmbeddedFile> files) {
  auto carried = std::make_shared<CarriedTranscoders>();
  carried->of_layers = dictionaries_of(files, {});
  const std::string source = "the starter's transcoders, names.json";
  const Json document = parse_json(contents_of(files, names_file), source);
  const auto require_whole = [&](bool holds) {
    require(holds, ErrorCode::corrupt_data, "{} does not name every feature", source);
  };
  require_whole(document["layers"].size() == carried->of_layers.size());
  carried->text = document["text"].get<std::string>();
  for (std::size_t layer = 0; layer < carried->of_layers.size(); ++layer) {
    std::vector<FeatureName>& names = carried->names.emplace_back();
    for (const Json& each : document["layers"][layer]) {
      names.push_back({.peaks = each[0].get<std::vector<std::int32_t>>(),
                       .context = each[1].get<std::vector<std::int32_t>>()});
    }
    require_whole(std::ssize(names) == carried->of_layers[layer].info().features);
  }
  return carried;
}

}  // namespace

std::shared_ptr<const CarriedTranscoders> carried_transcoders(const LoadedModel& model) {
  if (!model.is_starter()) return nullptr;
  static std::mutex mutex;
  static std::shared_ptr<const CarriedTranscoders> kept;
  const std::lock_guard lock(mutex);
  // Where they are files that a page fetches, they may come later.
  if (const auto files = starter_transcoders_files(); kept == nullptr && !files.empty()) {
    kept = read_all(files);
  }
  return kept;
}

std::vector<SparseDictionary> load_sparse_dictionaries(const std::string& name_or_path,
                                                       const DictionaryOptions& options) {
  if (name_or_path == starter_name) {
    const std::span<const EmbeddedFile> files = starter_transcoders_files();
    require(!files.empty(), ErrorCode::not_found,
            "this build of heed has no transcoders of 'starter' (models/starter-transcoders was "
            "missing when it was built)");
    return dictionaries_of(files, options);
  }
  std::vector<SparseDictionary> all;
  for (Dictionary& dictionary : load_dictionaries(name_or_path, options)) {
    all.emplace_back(std::make_shared<const Dictionary>(std::move(dictionary)));
  }
  return all;
}

}  // namespace heed
