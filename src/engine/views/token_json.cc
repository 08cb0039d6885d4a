#include "engine/views/token_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/utf8.h"

namespace heed {
namespace {

// Of an encoder, whose texts stand between special tokens: [CLS] and [SEP] belong to no word, and
// no space is before them.
bool stands_apart(const LoadedModel& model, std::int32_t id) {
  if (model.tokenizer == nullptr || model.transformer.specification().role != StackRole::encoder)
    return false;
  const auto& added = model.tokenizer->added_tokens();
  return std::ranges::any_of(
      added, [&](const AddedToken& token) { return token.id == id && token.special; });
}

// What `split` makes of the parts of a text between tokens that stand apart.
template <class Split>
std::vector<TextWord> split_between(const LoadedModel& model, std::span<const std::int32_t> ids,
                                    const Split& split) {
  const std::vector<std::string> bytes = model.token_bytes(ids);
  std::vector<TextWord> words;
  for (std::size_t begin = 0; begin < ids.size();) {
    if (stands_apart(model, ids[begin])) {
      const auto at = static_cast<std::int64_t>(begin);
      words.push_back({bytes[begin], at, at + 1});
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < ids.size() && !stands_apart(model, ids[end])) ++end;
    for (TextWord& word : split(std::span(bytes).subspan(begin, end - begin))) {
      word.begin += static_cast<std::int64_t>(begin);
      word.end += static_cast<std::int64_t>(begin);
      words.push_back(std::move(word));
    }
    begin = end;
  }
  return words;
}

}  // namespace

std::string named_bytes(std::string_view bytes) {
  std::string text;
  bool is_open = false;
  for (std::size_t i = 0; i < bytes.size();) {
    const Utf8Character character = read_utf8(bytes, i);
    if (character.valid) {
      if (is_open) text += "›";
      text += bytes.substr(i, character.length);
    } else {
      text += is_open ? " " : "‹";
      text += fmt::format("{:02X}", static_cast<unsigned char>(bytes[i]));
    }
    is_open = !character.valid;
    i += character.length;
  }
  return is_open ? text + "›" : text;
}

std::string token_text(const LoadedModel& model, std::int32_t id) {
  return named_bytes(model.token_bytes(id));
}

OrderedJson token_json(std::int32_t id, const std::string& bytes) {
  std::string text = named_bytes(bytes);
  OrderedJson token{{"id", id}, {"text", text}};
  if (text != bytes) {
    token["bytes"] = OrderedJson::array();
    for (const char byte : bytes) token["bytes"].push_back(static_cast<unsigned char>(byte));
  }
  return token;
}

OrderedJson token_json(const LoadedModel& model, std::int32_t id) {
  return token_json(id, model.token_bytes(id));
}

std::vector<TextWord> text_units(const LoadedModel& model, std::span<const std::int32_t> ids) {
  if (model.tokenizer != nullptr) {
    return split_between(model, ids,
                         [](std::span<const std::string> part) { return units_of(part); });
  }
  const std::vector<std::string> bytes = model.token_bytes(ids);
  std::vector<TextWord> units;
  for (std::size_t t = 0; t < bytes.size(); ++t) {
    const auto begin = static_cast<std::int64_t>(t);
    units.push_back({bytes[t], begin, begin + 1});
  }
  return units;
}

std::vector<TextWord> text_words(const LoadedModel& model, std::span<const std::int32_t> ids) {
  return split_between(model, ids,
                       [](std::span<const std::string> part) { return words_of(part); });
}

OrderedJson units_json(const std::vector<TextWord>& units) {
  OrderedJson list = OrderedJson::array();
  for (const TextWord& unit : units) {
    list.push_back({{"text", named_bytes(unit.text)}, {"begin", unit.begin}, {"end", unit.end}});
  }
  return list;
}

OrderedJson tokens_json(const LoadedModel& model, std::span<const std::int32_t> ids) {
  OrderedJson tokens = OrderedJson::array();
  for (const std::int32_t id : ids) tokens.push_back(token_json(model, id));
  return tokens;
}

}  // namespace heed
