#include "tokenizer/json_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"

namespace heed {
namespace {

std::int64_t read_id(const Json& value, std::string_view token, std::string_view source) {
  return json_integer(value, {fmt::format("{}: the id of the token {}", source, in_quotes(token))});
}

}  // namespace

std::string shown_in_quotes(const Json& value) { return in_quotes(value.dump()); }

const Json& json_member(const Json& object, const char* key, std::string_view source) {
  const Json* value = find_json_member(object, key);
  require(value != nullptr, ErrorCode::corrupt_data, "{}: '{}' is missing", source, key);
  return *value;
}

const std::string& json_string_member(const Json& object, const char* key,
                                      std::string_view source) {
  return json_string(json_member(object, key, source), {fmt::format("{}: '{}'", source, key)});
}

void require_json_value(const Json& object, const char* key, const std::vector<Json>& allowed,
                        std::string_view source) {
  const Json* value = find_json_member(object, key);
  if (value == nullptr) return;
  if (std::find(allowed.begin(), allowed.end(), *value) == allowed.end()) {
    fail(ErrorCode::unsupported, "{}: '{}' is {}; only {} is supported", source, key,
         shown_in_quotes(*value), allowed.empty() ? "null" : allowed.front().dump());
  }
}

bool json_boolean_member(const Json& object, const char* key, bool fallback,
                         std::string_view source) {
  const Json* value = find_json_member(object, key);
  if (value == nullptr) return fallback;
  return json_boolean(*value, {fmt::format("{}: '{}'", source, key)});
}

const Json& json_array_member(const Json& object, const char* key, std::string_view source) {
  const Json& value = json_member(object, key, source);
  if (!value.is_array()) {
    fail(ErrorCode::corrupt_data, "{}: '{}' is {}; expected an array", source, key,
         shown_in_quotes(value));
  }
  return value;
}

AddedToken read_added_token(const Json& entry, std::int64_t id, std::string_view source) {
  const std::string& content = json_string_member(entry, "content", source);
  const std::string where = fmt::format("{}: added token {}", source, in_quotes(content));
  require(id >= 0 && id < INT32_MAX, ErrorCode::corrupt_data, "{} has the id {}; expected 0 to {}",
          where, id, INT32_MAX - 1);
  const bool special = json_boolean_member(entry, "special", false, where);
  return {.id = static_cast<std::int32_t>(id),
          .content = content,
          .special = special,
          .normalized = json_boolean_member(entry, "normalized", !special, where),
          .strip_left = json_boolean_member(entry, "lstrip", false, where),
          .strip_right = json_boolean_member(entry, "rstrip", false, where),
          .single_word = json_boolean_member(entry, "single_word", false, where)};
}

Json added_token_json(const AddedToken& token) {
  return {{"id", token.id},
          {"content", token.content},
          {"single_word", token.single_word},
          {"lstrip", token.strip_left},
          {"rstrip", token.strip_right},
          {"normalized", token.normalized},
          {"special", token.special}};
}

std::vector<AddedToken> read_added_tokens(const Json& document, std::string_view source) {
  std::vector<AddedToken> added;
  const Json* list = find_json_member(document, "added_tokens");
  if (list == nullptr) return added;
  if (!list->is_array()) {
    fail(ErrorCode::corrupt_data, "{}: 'added_tokens' is {}; expected an array", source,
         shown_in_quotes(*list));
  }
  for (const Json& entry : *list) {
    const std::string& content = json_string_member(entry, "content", source);
    const std::int64_t id = read_id(json_member(entry, "id", source), content, source);
    added.push_back(read_added_token(entry, id, source));
  }
  return added;
}

void place_added_tokens(std::vector<std::string>& tokens, const std::vector<AddedToken>& added,
                        std::string_view source) {
  const std::size_t most = 2 * (tokens.size() + added.size());  // one gap a token
  for (const AddedToken& token : added) {
    const auto id = static_cast<std::size_t>(token.id);
    require(id < most, ErrorCode::corrupt_data,
            "{}: the added token {} has the id {}; expected 0 to {}", source,
            in_quotes(token.content), token.id, most - 1);
    if (id >= tokens.size()) tokens.resize(id + 1);
    if (tokens[id].empty()) tokens[id] = token.content;
    if (tokens[id] != token.content) {
      fail(ErrorCode::corrupt_data, "{}: the added token {} has the id {} of {}", source,
           in_quotes(token.content), token.id, in_quotes(tokens[id]));
    }
  }
}

std::vector<std::string> tokens_by_id(const Json& vocabulary, const std::vector<AddedToken>& added,
                                      std::string_view source) {
  if (!vocabulary.is_object()) {
    fail(ErrorCode::corrupt_data, "{}: the vocabulary is {}; expected an object from tokens to ids",
         source, shown_in_quotes(vocabulary));
  }
  std::size_t count = vocabulary.size();
  for (const AddedToken& token : added) count += !vocabulary.contains(token.content);

  std::vector<std::string> tokens;
  const auto place = [&](const std::string& token, std::int64_t id) {
    if (id < 0 || id >= static_cast<std::int64_t>(2 * count)) {
      fail(
          ErrorCode::corrupt_data,
          "{}: the token {} has the id {}; expected 0 to {} for {} tokens, at most one gap a token",
          source, in_quotes(token), id, static_cast<std::int64_t>(2 * count) - 1, count);
    }
    require(!token.empty(), ErrorCode::corrupt_data, "{}: the token with the id {} is ''", source,
            id);
    if (static_cast<std::size_t>(id) >= tokens.size()) tokens.resize(id + 1);
    if (!tokens[id].empty() && tokens[id] != token) {
      fail(ErrorCode::corrupt_data, "{}: the tokens {} and {} have the same id {}", source,
           in_quotes(tokens[id]), in_quotes(token), id);
    }
    tokens[id] = token;
  };
  for (const auto& [token, id] : vocabulary.items()) place(token, read_id(id, token, source));
  for (const AddedToken& token : added) {
    const auto known = vocabulary.find(token.content);
    require(known == vocabulary.end() || *known == token.id, ErrorCode::corrupt_data,
            "{}: the added token {} has the id {}, and {} in the vocabulary", source,
            in_quotes(token.content), token.id, known == vocabulary.end() ? "none" : known->dump());
    place(token.content, token.id);
  }
  return tokens;
}

std::string json_quoted(std::string_view text) { return Json(text).dump(); }

std::string write_tokenizer_json(const TokenizerJsonParts& parts) {
  std::string added;
  for (const AddedToken& token : parts.added) {
    added += fmt::format(
        "{}\n    {{\"id\": {}, \"content\": {}, \"single_word\": {}, \"lstrip\": {}, "
        "\"rstrip\": {}, \"normalized\": {}, \"special\": {}}}",
        added.empty() ? "" : ",", token.id, json_quoted(token.content), token.single_word,
        token.strip_left, token.strip_right, token.normalized, token.special);
  }
  return fmt::format(
      "{{\n"
      "  \"version\": \"1.0\",\n"
      "  \"truncation\": null,\n"
      "  \"padding\": null,\n"
      "  \"added_tokens\": [{}{}],\n"
      "  \"normalizer\": {},\n"
      "  \"pre_tokenizer\": {},\n"
      "  \"post_processor\": {},\n"
      "  \"decoder\": {},\n"
      "  \"model\": {}\n"
      "}}\n",
      added, added.empty() ? "" : "\n  ", parts.normalizer, parts.pre_tokenizer,
      parts.post_processor, parts.decoder, parts.model);
}

}  // namespace heed
