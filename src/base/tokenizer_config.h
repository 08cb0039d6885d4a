// tokenizer_config.json of a model's directory, and the older files beside it that it replaced:
// special_tokens_map.json and added_tokens.json. This is their only reader.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace heed {

inline constexpr const char* tokenizer_config_name = "tokenizer_config.json";

// The keys of the tokens that have a role, as chat templates name them too.
inline constexpr const char* special_token_keys[] = {
    "bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"};

class TokenizerConfig {
 public:
  TokenizerConfig() = default;  // says nothing

  // Files that are not there say nothing. Throws Error{corrupt_data} for one that is no JSON
  // object.
  explicit TokenizerConfig(const std::filesystem::path& directory);

  // That of the document tokenizer_config.json alone.
  static TokenizerConfig of(Json document);

  bool empty() const {
    return config_.is_null() && special_tokens_map_.is_null() && added_tokens_.is_null();
  }

  // A member of tokenizer_config.json; null: absent or null.
  const Json* find(const char* key) const;
  // The boolean member `key`. Throws Error{corrupt_data} for another value.
  std::optional<bool> boolean(const char* key) const;

  // What tokenizer_config.json or else special_tokens_map.json has under a key of special tokens;
  // null: absent or null.
  const Json* find_special(const char* key) const;
  // The token that has a role: a string, or an object whose "content" it is. Throws
  // Error{corrupt_data} for another value.
  std::optional<std::string> special_token(const char* key) const;
  // All of special_token_keys that are there, by key.
  std::map<std::string, std::string> special_tokens() const;

  const Json& added_tokens() const { return added_tokens_; }  // added_tokens.json; null: no file

  // The paths of tokenizer_config.json and added_tokens.json, for messages.
  const std::string& source() const { return source_; }
  const std::string& added_tokens_source() const { return added_tokens_source_; }

  // The names and texts of the files that are there.
  const std::vector<std::pair<std::string, std::string>>& texts() const { return texts_; }

 private:
  Json read(const std::filesystem::path& path);

  Json config_;
  Json special_tokens_map_;
  Json added_tokens_;
  std::string source_ = tokenizer_config_name;
  std::string added_tokens_source_;
  std::vector<std::pair<std::string, std::string>> texts_;
};

// The text of a token: a string, or an object whose "content" it is. Throws Error{corrupt_data}
// that begins with `label`.
const std::string& special_token_text(const Json& token, const std::string& label);

}  // namespace heed
