#include "tokenizer/config_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizer/bpe_json.h"
#include "tokenizer/json_parts.h"

namespace heed {
namespace {

constexpr const char* decoder_key = "added_tokens_decoder";

// Added tokens by content, in the order in which they came.
class AddedTokenList {
 public:
  explicit AddedTokenList(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) places_.emplace(tokens_[i].content, i);
  }

  AddedToken* find(const std::string& content) {
    const auto found = places_.find(content);
    return found == places_.end() ? nullptr : &tokens_[found->second];
  }

  void add(AddedToken token) {
    places_.emplace(token.content, tokens_.size());
    tokens_.push_back(std::move(token));
  }

  std::vector<AddedToken> take() { return std::move(tokens_); }

 private:
  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string, std::size_t> places_;
};

std::int64_t id_of_key(const std::string& key, std::string_view source) {
  std::int64_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  const bool is_id = error == std::errc() && end == key.data() + key.size() && id >= 0;
  require(is_id, ErrorCode::corrupt_data, "{}: '{}' has the id {}; expected a number", source,
          decoder_key, in_quotes(key));
  return id;
}

// The tokens that the configuration calls special, as it has them: strings or objects.
std::vector<const Json*> special_entries(const TokenizerConfig& config) {
  std::vector<const Json*> entries;
  const auto add = [&](const Json* entry) {
    if (entry != nullptr && !entry->is_null()) entries.push_back(entry);
  };
  for (const char* const key : special_token_keys) add(config.find_special(key));
  for (const char* const key : {"additional_special_tokens", "extra_special_tokens"}) {
    const Json* const list = config.find_special(key);
    if (list == nullptr || !list->is_structured()) continue;
    for (const Json& entry : *list) add(&entry);  // of a list, or the values of an object
  }
  return entries;
}

std::string special_label(const TokenizerConfig& config) {
  return config.source() + ": a special token";
}

std::unordered_set<std::string> special_names(const TokenizerConfig& config) {
  std::unordered_set<std::string> names;
  for (const Json* const entry : special_entries(config)) {
    names.insert(special_token_text(*entry, special_label(config)));
  }
  return names;
}

// By ascending id.
void add_listed_tokens(const Json& listed, const TokenizerConfig& config, const FindToken& find,
                       AddedTokenList& added) {
  const std::string& source = config.source();
  require(listed.is_object(), ErrorCode::corrupt_data, "{}: '{}' is {}; expected an object", source,
          decoder_key, shown_in_quotes(listed));
  const std::unordered_set<std::string> special = special_names(config);
  std::map<std::int64_t, const Json*> by_id;
  for (const auto& [key, entry] : listed.items()) by_id[id_of_key(key, source)] = &entry;
  for (const auto& [id, entry] : by_id) {
    AddedToken token = read_added_token(*entry, id, source);
    if (token.content.empty()) continue;
    token.special = token.special || special.contains(token.content);
    AddedToken* const known = added.find(token.content);
    if (known != nullptr) {
      token.id = known->id;
      *known = std::move(token);
    } else {
      token.id = find(token.content).value_or(token.id);
      added.add(std::move(token));
    }
  }
}

AddedToken special_token_of(const Json& entry, std::int32_t id, const std::string& source) {
  if (entry.is_string()) return {.id = id, .content = entry.get<std::string>()};
  AddedToken token = read_added_token(entry, id, source);
  token.special = true;
  token.normalized = json_boolean_member(entry, "normalized", false, source);
  return token;
}

void add_old_tokens(const TokenizerConfig& config, const FindToken& find, AddedTokenList& added) {
  const std::string& source = config.added_tokens_source();
  const std::unordered_set<std::string> special = special_names(config);
  std::map<std::int64_t, std::string> by_id;
  for (const auto& [content, id] : config.added_tokens().items()) {
    by_id[json_integer(id, {fmt::format("{}: the id of {}", source, in_quotes(content))}, 0,
                       INT32_MAX - 1)] = content;
  }
  for (const auto& [id, content] : by_id) {
    if (content.empty() || added.find(content) != nullptr) continue;
    const bool is_special = special.contains(content);
    added.add({.id = find(content).value_or(static_cast<std::int32_t>(id)),
               .content = content,
               .special = is_special,
               .normalized = !is_special});
  }
}

// The ids of a vocabulary: an object from texts to ids or, of Unigram, a list of texts and scores.
FindToken find_in_document(const Json& document, std::string_view source) {
  const Json& vocabulary = json_member(json_member(document, "model", source), "vocab", source);
  if (vocabulary.is_object()) {
    return [&vocabulary](const std::string& text) -> std::optional<std::int32_t> {
      const auto found = vocabulary.find(text);
      if (found == vocabulary.end() || !found->is_number_integer()) return std::nullopt;
      return found->get<std::int32_t>();
    };
  }
  std::unordered_map<std::string, std::int32_t> ids;
  std::int32_t id = 0;
  for (const Json& entry : vocabulary) {
    const bool is_token = entry.is_array() && !entry.empty() && entry[0].is_string();
    if (is_token) ids.emplace(entry[0].get<std::string>(), id);
    ++id;
  }
  return [ids = std::move(ids)](const std::string& text) -> std::optional<std::int32_t> {
    const auto found = ids.find(text);
    if (found == ids.end()) return std::nullopt;
    return found->second;
  };
}

// The token `key` at the side of a text where it belongs, if it is to be there.
void set_token(const TokenizerConfig& config, const char* wanted_key, const char* key,
               const FindToken& find, std::vector<std::int32_t>& ids) {
  const std::optional<bool> wanted = config.boolean(wanted_key);
  if (!wanted) return;
  const std::optional<std::string> text = config.special_token(key);
  const std::optional<std::int32_t> id = text ? find(*text) : std::nullopt;
  require(id.has_value() || !*wanted, ErrorCode::corrupt_data,
          "{}: '{}' is true, but '{}' is {}; expected a token of the tokenizer", config.source(),
          wanted_key, key, text ? in_quotes(*text) : "absent");
  if (!id) return;
  const bool is_there = std::ranges::find(ids, *id) != ids.end();
  if (*wanted && !is_there) {
    ids.insert(std::string_view(key) == "bos_token" ? ids.begin() : ids.end(), *id);
  } else if (!*wanted && is_there) {
    std::erase(ids, *id);
  }
}

}  // namespace

FindToken find_among(const std::vector<std::string>& tokens) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  ids.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty()) ids.emplace(tokens[id], static_cast<std::int32_t>(id));
  }
  return [ids = std::move(ids)](const std::string& text) -> std::optional<std::int32_t> {
    const auto found = ids.find(text);
    if (found == ids.end()) return std::nullopt;
    return found->second;
  };
}

std::vector<AddedToken> with_config_tokens(std::vector<AddedToken> added,
                                           const TokenizerConfig& config, const FindToken& find) {
  AddedTokenList list(std::move(added));
  if (const Json* const listed = config.find(decoder_key)) {
    add_listed_tokens(*listed, config, find, list);
  } else if (!config.added_tokens().is_null()) {
    add_old_tokens(config, find, list);
  }
  for (const Json* const entry : special_entries(config)) {
    const std::string& text = special_token_text(*entry, special_label(config));
    if (text.empty() || list.find(text) != nullptr) continue;
    if (const auto id = find(text)) list.add(special_token_of(*entry, *id, config.source()));
  }
  return list.take();
}

TextTemplate with_config_template(TextTemplate around, const TokenizerConfig& config,
                                  const FindToken& find) {
  set_token(config, "add_bos_token", "bos_token", find, around.before);
  set_token(config, "add_eos_token", "eos_token", find, around.after);
  return around;
}

void apply_tokenizer_config(Json& document, const TokenizerConfig& config,
                            std::string_view source) {
  if (config.empty()) return;
  const FindToken find = find_in_document(document, source);
  const std::vector<AddedToken> added =
      with_config_tokens(read_added_tokens(document, source), config, find);
  Json list = Json::array();
  for (const AddedToken& token : added) list.push_back(added_token_json(token));
  const bool has_template =
      config.boolean("add_bos_token").has_value() || config.boolean("add_eos_token").has_value();
  if (has_template) {
    std::unordered_map<std::string, std::int32_t> ids;
    std::unordered_map<std::int32_t, std::string> texts;
    for (const AddedToken& token : added) {
      ids.emplace(token.content, token.id);
      texts.emplace(token.id, token.content);
    }
    const auto find_added = [&](const std::string& text) -> std::optional<std::int32_t> {
      const auto found = ids.find(text);
      if (found == ids.end()) return std::nullopt;
      return found->second;
    };
    const TextTemplate around =
        with_config_template(read_text_template(document, source), config, find_added);
    document["post_processor"] = Json::parse(write_post_processor(around, {}, [&](std::int32_t id) {
      const auto text = texts.find(id);
      return text == texts.end() ? fmt::format("<{}>", id) : text->second;
    }));
  }
  document["added_tokens"] = std::move(list);
}

}  // namespace heed
