#include "formats/pooling.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "formats/gguf_config.h"
#include "formats/gguf_files.h"
#include "formats/model_files.h"

namespace heed {
namespace {

// The values of `pooling_type`.
constexpr std::int64_t type_none = 0;
constexpr std::int64_t type_mean = 1;
constexpr std::int64_t type_first = 2;
constexpr std::int64_t type_last = 3;
constexpr std::int64_t type_rank = 4;

std::int64_t type_of(TokenPooling pooling) {
  switch (pooling) {
    case TokenPooling::mean: return type_mean;
    case TokenPooling::first: return type_first;
    case TokenPooling::last: break;
  }
  return type_last;
}

constexpr std::string_view mode_prefix = "pooling_mode_";

// The modes that sentence-transformers' file turns on, without their prefix.
std::vector<std::string> modes_of(const Json& document, const std::string& source) {
  require(document.is_object(), ErrorCode::corrupt_data, "{}: expected a JSON object, not {}",
          source, shown_json(document));
  std::vector<std::string> modes;
  for (const auto& [key, value] : document.items()) {
    if (!key.starts_with(mode_prefix)) continue;
    if (json_boolean(value, {source + ": '" + key + "'"})) {
      modes.push_back(key.substr(mode_prefix.size()));
    }
  }
  return modes;
}

// Nothing for several modes, and for those that heed does not compute.
std::optional<TokenPooling> pooling_of(const std::vector<std::string>& modes) {
  if (modes.empty()) return TokenPooling::mean;
  if (modes.size() > 1) return std::nullopt;
  // The sum divided by the square root of the length points where the mean does.
  if (modes[0] == "mean_tokens" || modes[0] == "mean_sqrt_len_tokens") return TokenPooling::mean;
  if (modes[0] == "cls_token") return TokenPooling::first;
  if (modes[0] == "lasttoken") return TokenPooling::last;
  return std::nullopt;
}

// A sentence is read by a transformer, pooled, and scaled to length 1; nothing else.
void check_modules(const Json& document, const std::string& source) {
  require(document.is_array(), ErrorCode::corrupt_data, "{}: expected a list of modules, not {}",
          source, shown_json(document));
  for (const Json& module : document) {
    const Json* const type = find_json_member(module, "type");
    require(type != nullptr, ErrorCode::corrupt_data, "{}: a module has no 'type'", source);
    const std::string& name = json_string(*type, {source + ": 'type'"});
    const std::string kind = name.substr(name.rfind('.') + 1);
    require(kind == "Transformer" || kind == "Pooling" || kind == "Normalize",
            ErrorCode::unsupported,
            "{}: the module '{}' is not computed; heed supports Transformer, Pooling and Normalize",
            source, name);
    const Json* const path = find_json_member(module, "path");
    require(kind != "Pooling" || path == nullptr ||
                std::filesystem::path(json_string(*path, {source + ": 'path'"})) ==
                    std::filesystem::path(pooling_file_name).parent_path(),
            ErrorCode::unsupported, "{}: the path of '{}' is '{}'; heed reads {}", source, name,
            path == nullptr ? "" : shown_json(*path), pooling_file_name);
  }
}

TokenPooling pooling_of_type(std::int64_t type, const std::string& source) {
  require(type != type_rank, ErrorCode::unsupported,
          "{}: '{}' is {}, a rank; heed makes vectors of texts and ranks none", source,
          pooling_field, type);
  return type == type_first  ? TokenPooling::first
         : type == type_last ? TokenPooling::last
                             : TokenPooling::mean;
}

}  // namespace

TokenPooling read_pooling(const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  if (!is_gguf_path(directory)) {
    const std::filesystem::path modules = directory / modules_file_name;
    if (std::filesystem::exists(modules)) {
      check_modules(read_config_document(modules), modules.string());
    }
    const std::filesystem::path file = directory / pooling_file_name;
    if (std::filesystem::exists(file)) {
      const auto modes = modes_of(read_config_document(file), file.string());
      const auto pooling = pooling_of(modes);
      require(pooling.has_value(), ErrorCode::unsupported,
              "{}: '{}{}'{} is not computed; heed supports the mean, the first token or the last",
              file.string(), mode_prefix, modes.front(),
              modes.size() > 1 ? " beside '" + std::string(mode_prefix) + modes[1] + "'" : "");
      return *pooling;
    }
  }
  const ConfigFields fields = read_model_fields(directory);
  return pooling_of_type(
      fields.has(pooling_field) ? fields.integer_or(pooling_field, type_none) : type_none,
      fields.source());
}

std::int64_t pooling_type_of(const SourceFiles& source) {
  const auto file = std::ranges::find(source.companions, pooling_file_name, &CompanionFile::name);
  if (file != source.companions.end()) {
    const auto pooling =
        pooling_of(modes_of(parse_config(file->text, pooling_file_name), pooling_file_name));
    return pooling ? type_of(*pooling) : type_none;
  }
  const auto field = source.config.find(pooling_field);
  const bool is_known = field != source.config.end() && field->is_number_integer() &&
                        *field >= type_none && *field <= type_rank;
  return is_known ? field->get<std::int64_t>() : type_none;
}

}  // namespace heed
