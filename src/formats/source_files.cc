#include "formats/source_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "formats/config_file.h"
#include "formats/model_files.h"
#include "formats/text_ends.h"
#include "tokenizer/tokenizer.h"

namespace heed {
namespace {

ConfigFields fields_of_source(const Json& config, const SourceFiles& source) {
  const ConfigFields fields(config, config_file_name);
  const auto generation =
      std::ranges::find(source.companions, generation_config_file_name, &CompanionFile::name);
  if (generation == source.companions.end()) return fields;
  return led_by_generation(fields,
                           {parse_config(generation->text, generation->name), generation->name});
}

// `written` over the config of the source, where it says something else than heed would have
// written of the source.
OrderedJson changed_config(const OrderedJson& source, const OrderedJson& before,
                           const OrderedJson& written) {
  OrderedJson config = source;
  for (const auto& [key, value] : before.items()) {
    if (!written.contains(key)) config.erase(key);
  }
  for (const auto& [key, value] : written.items()) {
    if (!before.contains(key) || before.at(key) != value) config[key] = value;
  }
  for (const char* const key : {"torch_dtype", "dtype"}) {
    if (config.contains(key)) config[key] = "float32";
  }
  if (config.contains("heed") && config["heed"].is_object()) {
    config["heed"].erase("dtype");
    if (config["heed"].empty()) config.erase("heed");
  }
  return config;
}

}  // namespace

const std::vector<std::string_view>& companion_file_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all(std::begin(tokenizer_file_names),
                                      std::end(tokenizer_file_names));
    all.insert(all.end(), {"tokenizer.model", "sentencepiece.bpe.model"});
    all.insert(all.end(), std::begin(description_file_names), std::end(description_file_names));
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }();
  return names;
}

SourceFiles read_source_files(const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  SourceFiles files;
  files.config = read_ordered_config(directory / config_file_name);
  for (const std::string_view name : companion_file_names()) {
    if (std::filesystem::is_regular_file(directory / name)) {
      files.companions.push_back({std::string(name), read_text_file(directory / name)});
    }
  }
  return files;
}

ConfigFields read_model_fields(const std::filesystem::path& directory) {
  const std::filesystem::path config = directory / config_file_name;
  const std::filesystem::path generation = directory / generation_config_file_name;
  const ConfigFields fields(read_config_document(config), config.string());
  if (!std::filesystem::is_regular_file(generation)) return fields;
  return led_by_generation(fields, {read_config_document(generation), generation.string()});
}

WrittenConfig written_config(const Architecture& model, const SourceFiles& source) {
  if (source.config.is_null()) {
    const Format& format = format_of(model);
    return {.format = &format, .config = format.write(model)};
  }
  const Json config(source.config);
  const ConfigFields fields = fields_of_source(config, source);
  const Format& own = format_of_config(fields);
  const Architecture before = read_described(own, fields);
  Architecture architecture = model;
  if (!model.is_encoder_decoder()) architecture.padding = before.padding;  // a stack has none
  const Format& first = format_of(architecture);
  const WrittenConfig fresh{.format = &first, .config = first.write(architecture)};
  const Format& format = own.expresses(architecture) ? own : first;
  WrittenConfig kept{
      .format = &format,
      .config = changed_config(source.config, own.write(before), format.write(architecture))};
  const auto read = [&](const OrderedJson& written) {
    return read_described(format, fields_of_source(Json(written), source));
  };
  return read(kept.config) == read(format.write(architecture)) ? kept : fresh;
}

}  // namespace heed
