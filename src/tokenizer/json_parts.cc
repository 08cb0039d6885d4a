#include "tokenizer/json_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

namespace heed {
namespace {

std::int64_t read_id(const Json& value, std::string_view token, std::string_view source) {
  return json_integer(value, {fmt::format("{}: the id of the token {}", source, in_quotes(token))});
}

constexpr const char* post_processor_key = "post_processor";

std::pair<std::string, std::string> read_merge(const Json& merge, std::size_t rank,
                                               std::string_view source) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  if (!merge.is_string()) {
    fail(ErrorCode::corrupt_data, "{}: merge {} is {}; expected \"a b\" or [\"a\", \"b\"]", source,
         rank, shown_in_quotes(merge));
  }
  const auto& text = merge.get_ref<const std::string&>();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    fail(ErrorCode::corrupt_data, "{}: merge {} is {}; expected two parts and a space between",
         source, rank, in_quotes(text));
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

// The ids of a special token of a template, from its list of special tokens.
void append_special_ids(const Json& step, const Json& item, std::vector<std::int32_t>& ids,
                        std::string_view source) {
  const std::string& name = json_string_member(item, "id", source);
  const Json& known = json_member(step, "special_tokens", source);
  const Json* token = find_json_member(known, name.c_str());
  require(token != nullptr, ErrorCode::corrupt_data,
          "{}: the template names the token {}, which is not among its 'special_tokens'", source,
          in_quotes(name));
  const std::string where = fmt::format("{}: token {} of the template", source, in_quotes(name));
  for (const Json& id : json_array_member(*token, "ids", where)) {
    ids.push_back(
        static_cast<std::int32_t>(json_integer(id, {where + ": the id"}, 0, INT32_MAX - 1)));
  }
}

TextTemplate read_template(const Json& step, std::string_view source) {
  TextTemplate result;
  int texts = 0;
  for (const Json& item : json_array_member(step, "single", source)) {
    if (const Json* token = find_json_member(item, "SpecialToken")) {
      append_special_ids(step, *token, texts == 0 ? result.before : result.after, source);
      continue;
    }
    const Json* sequence = find_json_member(item, "Sequence");
    require(sequence != nullptr && json_string_member(*sequence, "id", source) == "A",
            ErrorCode::corrupt_data,
            "{}: {} in 'single' of the template; expected a SpecialToken or the Sequence A", source,
            shown_in_quotes(item));
    ++texts;
  }
  require(texts == 1, ErrorCode::corrupt_data,
          "{}: 'single' of the template has the Sequence A {} times; expected 1", source, texts);
  return result;
}

// The id in ["[CLS]", 101], the member `key` of BertProcessing and RobertaProcessing.
std::int32_t read_named_id(const Json& step, const char* key, std::string_view source) {
  const Json& pair = json_array_member(step, key, source);
  require(pair.size() == 2 && pair[0].is_string(), ErrorCode::corrupt_data,
          "{}: '{}' of the {} is {}; expected a token and its id", source, key, post_processor_key,
          shown_in_quotes(pair));
  return static_cast<std::int32_t>(
      json_integer(pair[1], {fmt::format("{}: the id of '{}'", source, key)}, 0, INT32_MAX - 1));
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

std::vector<std::pair<std::string, std::string>> read_merges(const Json& model,
                                                             std::string_view source) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const Json& merges = json_array_member(model, "merges", source);
  pairs.reserve(merges.size());
  for (const Json& merge : merges) pairs.push_back(read_merge(merge, pairs.size(), source));
  return pairs;
}

void check_bpe_model(const Json& model, std::string_view source) {
  require_json_value(model, "dropout", {0}, source);
  require_json_value(model, "continuing_subword_prefix", {""}, source);
  require_json_value(model, "end_of_word_suffix", {""}, source);
}

std::vector<const Json*> read_steps(const Json& document, const char* key, const char* steps_key,
                                    std::string_view source) {
  std::vector<const Json*> steps;
  const Json* whole = find_json_member(document, key);
  if (whole == nullptr) return steps;
  json_string_member(*whole, "type", fmt::format("{}: {}", source, key));
  if (step_type(*whole) != "Sequence") return {whole};
  for (const Json& step : json_array_member(*whole, steps_key, source)) {
    json_string_member(step, "type", fmt::format("{}: {}", source, key));
    steps.push_back(&step);
  }
  return steps;
}

const std::string& step_type(const Json& step) {
  return step.at("type").get_ref<const std::string&>();
}

void refuse_step(const Json& step, const char* key, std::string_view expected,
                 std::string_view source) {
  fail(ErrorCode::unsupported, "{}: the {} has the step {} ({}); supported are {}", source, key,
       in_quotes(step_type(step)), shown_in_quotes(step), expected);
}

TextTemplate read_text_template(const Json& document, std::string_view source) {
  TextTemplate result;
  bool found = false;
  for (const Json* step : read_steps(document, post_processor_key, "processors", source)) {
    if (step_type(*step) == "ByteLevel") continue;
    require(!found, ErrorCode::unsupported, "{}: the {} has two steps that add tokens", source,
            post_processor_key);
    if (step_type(*step) == "TemplateProcessing") {
      result = read_template(*step, source);
    } else if (step_type(*step) == "BertProcessing" || step_type(*step) == "RobertaProcessing") {
      result = {.before = {read_named_id(*step, "cls", source)},
                .after = {read_named_id(*step, "sep", source)}};
    } else {
      refuse_step(*step, post_processor_key,
                  "ByteLevel, TemplateProcessing, BertProcessing and RobertaProcessing", source);
    }
    found = true;
  }
  return result;
}

std::string write_post_processor(const TextTemplate& tokens, std::string_view other,
                                 const std::function<std::string(std::int32_t)>& token_text) {
  if (tokens.before.empty() && tokens.after.empty())
    return std::string(other.empty() ? "null" : other);
  OrderedJson single = OrderedJson::array();
  OrderedJson pair = OrderedJson::array();
  OrderedJson special = OrderedJson::object();
  const auto put = [&](OrderedJson& list, const std::vector<std::int32_t>& ids, int type) {
    for (const std::int32_t id : ids) {
      const std::string text = token_text(id);
      list.push_back({{"SpecialToken", {{"id", text}, {"type_id", type}}}});
      special[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
    }
  };
  const auto put_text = [&](OrderedJson& list, const char* name, int type) {
    put(list, tokens.before, type);
    list.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
    put(list, tokens.after, type);
  };
  put_text(single, "A", 0);
  put_text(pair, "A", 0);
  put_text(pair, "B", 1);
  const OrderedJson step = {{"type", "TemplateProcessing"},
                            {"single", single},
                            {"pair", pair},
                            {"special_tokens", special}};
  if (other.empty()) return step.dump();
  return fmt::format(R"({{"type": "Sequence", "processors": [{}, {}]}})", other, step.dump());
}

std::string write_bpe_model(const BpeModelParts& parts) {
  std::string vocabulary;
  std::string merges;
  for (std::int32_t id = 0; id < parts.vocabulary_size; ++id) {
    const std::string text = parts.token_text(id);
    if (text.empty()) continue;
    vocabulary +=
        fmt::format("{}\n      {}: {}", vocabulary.empty() ? "" : ",", json_quoted(text), id);
  }
  for (const MergeRule& merge : parts.merges) {
    const std::string left = parts.token_text(merge.left);
    const std::string right = parts.token_text(merge.right);
    const bool has_space = (left + right).find(' ') != std::string::npos;
    merges += fmt::format("{}\n      {}", merges.empty() ? "" : ",",
                          has_space ? fmt::format("[{}, {}]", json_quoted(left), json_quoted(right))
                                    : json_quoted(left + " " + right));
  }
  return fmt::format(
      "{{\n"
      "    \"type\": \"BPE\",\n"
      "    \"dropout\": null,\n"
      "    \"unk_token\": {},\n"
      "    \"continuing_subword_prefix\": null,\n"
      "    \"end_of_word_suffix\": null,\n"
      "    \"fuse_unk\": {},\n"
      "    \"byte_fallback\": {},\n"
      "{}"
      "    \"vocab\": {{{}\n    }},\n"
      "    \"merges\": [{}{}]\n"
      "  }}",
      parts.unknown, parts.fuse_unknown, parts.byte_fallback,
      parts.ignore_merges ? "    \"ignore_merges\": true,\n" : "", vocabulary, merges,
      merges.empty() ? "" : "\n    ");
}

}  // namespace heed
