#include "base/tokenizer_config.h"

#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace heed {
namespace {

constexpr std::size_t max_tokenizer_config = std::size_t{64} << 20;  // bytes

}  // namespace

const std::string& special_token_text(const Json& token, const std::string& label) {
  if (!token.is_object()) return json_string(token, {label});
  const Json* const content = find_json_member(token, "content");
  require(content != nullptr, ErrorCode::corrupt_data, "{} has no \"content\"", label);
  return json_string(*content, {label + ": 'content'"});
}

TokenizerConfig::TokenizerConfig(const std::filesystem::path& directory)
    : source_((directory / tokenizer_config_name).string()),
      added_tokens_source_((directory / "added_tokens.json").string()) {
  config_ = read(source_);
  special_tokens_map_ = read(directory / "special_tokens_map.json");
  added_tokens_ = read(added_tokens_source_);
}

TokenizerConfig TokenizerConfig::of(Json document) {
  TokenizerConfig config;
  config.config_ = std::move(document);
  return config;
}

// Null where there is no such file.
Json TokenizerConfig::read(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return nullptr;
  std::string text = read_text_file(path, max_tokenizer_config);
  Json document = parse_json(text, path.string());
  require(document.is_object(), ErrorCode::corrupt_data, "{}: not a JSON object", path.string());
  texts_.emplace_back(path.filename().string(), std::move(text));
  return document;
}

const Json* TokenizerConfig::find(const char* key) const { return find_json_member(config_, key); }

std::optional<bool> TokenizerConfig::boolean(const char* key) const {
  const Json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  return json_boolean(*value, {source_ + ": '" + key + "'"});
}

const Json* TokenizerConfig::find_special(const char* key) const {
  const Json* const value = find(key);
  return value != nullptr ? value : find_json_member(special_tokens_map_, key);
}

std::optional<std::string> TokenizerConfig::special_token(const char* key) const {
  const Json* const token = find_special(key);
  if (token == nullptr) return std::nullopt;
  return special_token_text(*token, source_ + ": " + key);
}

std::map<std::string, std::string> TokenizerConfig::special_tokens() const {
  std::map<std::string, std::string> tokens;
  for (const char* const key : special_token_keys) {
    if (auto text = special_token(key)) tokens.emplace(key, std::move(*text));
  }
  return tokens;
}

}  // namespace heed
