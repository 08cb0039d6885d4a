#include "tokenizer/json_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/json_fields.h"
#include "tokenizer/utf8.h"

namespace heed {
namespace {

// The JSON text of a value, cut to a length that suits a message.
std::string shown(const Json& value) { return in_quotes(value.dump()); }

std::int64_t read_id(const Json& value, std::string_view token, std::string_view source) {
  return json_integer(value, {fmt::format("{}: the id of the token {}", source, in_quotes(token))});
}

}  // namespace

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
    fail(ErrorCode::unsupported, "{}: '{}' is {}; only {} is supported", source, key, shown(*value),
         allowed.empty() ? "null" : allowed.front().dump());
  }
}

std::vector<AddedToken> read_added_tokens(const Json& document, std::string_view source) {
  std::vector<AddedToken> added;
  const Json* list = find_json_member(document, "added_tokens");
  if (list == nullptr) return added;
  if (!list->is_array()) {
    fail(ErrorCode::corrupt_data, "{}: 'added_tokens' is {}; expected an array", source,
         shown(*list));
  }
  for (const Json& entry : *list) {
    const std::string& content = json_string_member(entry, "content", source);
    const std::string where = fmt::format("{}: added token {}", source, in_quotes(content));
    for (const char* key : {"lstrip", "rstrip", "single_word"}) {
      require_json_value(entry, key, {false}, where);
    }
    const std::int64_t id = read_id(json_member(entry, "id", source), content, source);
    require(id >= 0 && id < INT32_MAX, ErrorCode::corrupt_data,
            "{} has the id {}; expected 0 to {}", where, id, INT32_MAX - 1);
    const Json* special = find_json_member(entry, "special");
    added.push_back({static_cast<std::int32_t>(id), content,
                     special != nullptr && json_boolean(*special, {where + ": 'special'"})});
  }
  return added;
}

std::vector<std::string> tokens_by_id(const Json& vocabulary, const std::vector<AddedToken>& added,
                                      std::string_view source) {
  if (!vocabulary.is_object()) {
    fail(ErrorCode::corrupt_data, "{}: the vocabulary is {}; expected an object from tokens to ids",
         source, shown(vocabulary));
  }
  std::size_t count = vocabulary.size();
  for (const AddedToken& token : added) count += !vocabulary.contains(token.content);

  std::vector<std::optional<std::string>> tokens(count);
  const auto place = [&](const std::string& token, std::int64_t id) {
    if (id < 0 || id >= static_cast<std::int64_t>(count)) {
      fail(ErrorCode::corrupt_data,
           "{}: the token {} has the id {}; the ids of {} tokens must be 0 to {}, without gaps",
           source, in_quotes(token), id, count, static_cast<std::int64_t>(count) - 1);
    }
    if (tokens[id] && *tokens[id] != token) {
      fail(ErrorCode::corrupt_data, "{}: the tokens {} and {} have the same id {}", source,
           in_quotes(*tokens[id]), in_quotes(token), id);
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
  std::vector<std::string> texts;
  texts.reserve(count);
  for (auto& token : tokens) {
    // Fewer distinct tokens than counted: an added token that is listed twice.
    require(token.has_value(), ErrorCode::corrupt_data, "{}: no token has the id {}", source,
            texts.size());
    texts.push_back(std::move(*token));
  }
  return texts;
}

std::string json_quoted(std::string_view text) { return Json(text).dump(); }

std::string write_tokenizer_json(const TokenizerJsonParts& parts) {
  std::string added;
  for (const AddedToken& token : parts.added) {
    added += fmt::format(
        "{}\n    {{\"id\": {}, \"content\": {}, \"single_word\": false, \"lstrip\": false, "
        "\"rstrip\": false, \"normalized\": false, \"special\": {}}}",
        added.empty() ? "" : ",", token.id, json_quoted(token.content), token.special);
  }
  return fmt::format(
      "{{\n"
      "  \"version\": \"1.0\",\n"
      "  \"truncation\": null,\n"
      "  \"padding\": null,\n"
      "  \"added_tokens\": [{}{}],\n"
      "  \"normalizer\": null,\n"
      "  \"pre_tokenizer\": {},\n"
      "  \"post_processor\": {},\n"
      "  \"decoder\": {},\n"
      "  \"model\": {}\n"
      "}}\n",
      added, added.empty() ? "" : "\n  ", parts.pre_tokenizer, parts.post_processor, parts.decoder,
      parts.model);
}

}  // namespace heed
