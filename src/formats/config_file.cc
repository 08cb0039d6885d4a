#include "formats/config_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "formats/gguf_files.h"
#include "formats/model_files.h"
#include "formats/text_ends.h"
#include "tokenizer/reading.h"
#include "tokenizer/tokenizer.h"

namespace heed {
namespace {

constexpr std::size_t max_config_file = std::size_t{16} << 20;

// Python's numbers that are no JSON, and how they stand in a document: after a character of the
// private area.
constexpr std::string_view special_numbers[] = {"NaN", "Infinity", "-Infinity"};
constexpr std::string_view mark = "\uE000";

std::string quoted(std::string_view number) { return fmt::format("\"{}{}\"", mark, number); }

// With these numbers, outside of strings, as strings.
std::string with_quoted_numbers(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const auto number = std::ranges::find_if(
        special_numbers, [&](std::string_view name) { return rest.starts_with(name); });
    if (!in_string && number != std::end(special_numbers)) {
      result += quoted(*number);
      at += number->size();
      continue;
    }
    const std::size_t length =
        in_string && text[at] == '\\' ? std::min<std::size_t>(2, rest.size()) : 1;
    if (text[at] == '"') in_string = !in_string;
    result += rest.substr(0, length);
    at += length;
  }
  return result;
}

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
  // A type may say more than that of the weights: see gemma.cc.
  const OrderedJson type = written.value("torch_dtype", OrderedJson("float32"));
  for (const char* const key : {"torch_dtype", "dtype"}) {
    if (config.contains(key)) config[key] = type;
  }
  if (config.contains("heed") && config["heed"].is_object()) {
    for (const char* rounding : {"dtype", "embedding", "arithmetic"}) {
      config["heed"].erase(rounding);
    }
    if (config["heed"].empty()) config.erase("heed");
  }
  return config;
}

}  // namespace

Architecture architecture_from_json(const Json& document, const std::string& source) {
  const ConfigFields fields(document, source);
  return read_described(format_of_config(fields), fields);
}

StackSpecification stack_config_from_json(const Json& document, const std::string& source) {
  const ConfigFields fields(document, source);
  const Format& format = format_of_config(fields);
  require_one_stack(format, source);
  return read_described(format, fields).decoder();
}

OrderedJson architecture_to_json(const Architecture& architecture) {
  return format_of(architecture).write(architecture);
}

bool can_be_written(const Architecture& architecture) {
  return std::ranges::any_of(formats(),
                             [&](const Format& format) { return format.expresses(architecture); });
}

OrderedJson stack_config_to_json(const StackSpecification& config) {
  return architecture_to_json({.stacks = {config}});
}

Json parse_config(std::string_view text, const std::string& source) {
  return parse_json(with_quoted_numbers(text), source);
}

OrderedJson parse_ordered_config(std::string_view text, const std::string& source) {
  parse_config(text, source);  // refuses what is wrong
  return OrderedJson::parse(with_quoted_numbers(text));
}

Json read_config_document(const std::filesystem::path& file) {
  return parse_config(read_text_file(file, max_config_file), file.string());
}

OrderedJson read_ordered_config(const std::filesystem::path& file) {
  return parse_ordered_config(read_text_file(file, max_config_file), file.string());
}

std::string config_text(const OrderedJson& document) {
  std::string text = document.dump(2) + "\n";
  for (const std::string_view number : special_numbers) {
    const std::string written = quoted(number);
    for (std::size_t at = text.find(written); at != std::string::npos;
         at = text.find(written, at)) {
      text.replace(at, written.size(), number);
    }
  }
  return text;
}

StackSpecification read_stack_config(const std::filesystem::path& file) {
  return stack_config_from_json(read_config_document(file), file.string());
}

const std::vector<std::string_view>& companion_file_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all(std::begin(tokenizer_file_names),
                                      std::end(tokenizer_file_names));
    all.insert(all.end(), {"sentencepiece.bpe.model", reading_file_name});
    all.insert(all.end(), std::begin(description_file_names), std::end(description_file_names));
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }();
  return names;
}

SourceFiles read_source_files(const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  if (is_gguf_path(directory)) return read_gguf_source_files(directory);
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
  if (is_gguf_path(directory)) {
    GgufModel model = open_gguf_model(directory);
    return {std::move(model.config), std::move(model.source)};
  }
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
