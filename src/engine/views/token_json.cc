#include "engine/views/token_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/utf8.h"

namespace heed {
namespace {

// The tokens that belong to no word of a side, and before which no space is: of an encoder's
// texts [CLS] and [SEP], of a translator's starts, ends and padding.
std::vector<std::int32_t> tokens_apart(const LoadedModel& model, PairSide side) {
  const Tokenizer* const tokenizer = model.tokenizer_of(side);
  const bool is_translator = model.is_translator();
  std::vector<std::int32_t> tokens;
  if (tokenizer == nullptr) return tokens;
  if (!is_translator && model.stack(side).role != StackRole::encoder) return tokens;
  for (const AddedToken& added : tokenizer->added_tokens()) {
    if (is_translator || added.special) tokens.push_back(added.id);
  }
  if (!is_translator) return tokens;
  const Architecture& architecture = model.architecture();
  tokens.push_back(static_cast<std::int32_t>(architecture.decoder_start));
  tokens.push_back(static_cast<std::int32_t>(architecture.padding));
  tokens.push_back(static_cast<std::int32_t>(architecture.encoder().end_of_text));
  for (const std::int32_t end : architecture.end_tokens()) tokens.push_back(end);
  return tokens;
}

// What `split` makes of the parts of a text between tokens that stand apart.
template <class Split>
std::vector<TextWord> split_between(const LoadedModel& model, PairSide side,
                                    std::span<const std::int32_t> ids, const Split& split) {
  const std::vector<std::string> bytes = model.token_bytes(ids, side);
  const std::vector<std::int32_t> apart = tokens_apart(model, side);
  const auto stands_apart = [&](std::size_t at) {
    return std::ranges::find(apart, ids[at]) != apart.end();
  };
  std::vector<TextWord> words;
  for (std::size_t begin = 0; begin < ids.size();) {
    if (stands_apart(begin)) {
      const auto at = static_cast<std::int64_t>(begin);
      words.push_back({bytes[begin], at, at + 1});
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < ids.size() && !stands_apart(end)) ++end;
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

std::string token_text(const LoadedModel& model, std::int32_t id, PairSide side) {
  return named_bytes(model.token_bytes(id, side));
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

OrderedJson token_json(const LoadedModel& model, std::int32_t id, PairSide side) {
  return token_json(id, model.token_bytes(id, side));
}

std::vector<TextWord> text_units(const LoadedModel& model, std::span<const std::int32_t> ids,
                                 PairSide side) {
  if (model.tokenizer_of(side) != nullptr) {
    return split_between(model, side, ids,
                         [](std::span<const std::string> part) { return units_of(part); });
  }
  const std::vector<std::string> bytes = model.token_bytes(ids, side);
  std::vector<TextWord> units;
  for (std::size_t t = 0; t < bytes.size(); ++t) {
    const auto begin = static_cast<std::int64_t>(t);
    units.push_back({bytes[t], begin, begin + 1});
  }
  return units;
}

std::vector<TextWord> text_words(const LoadedModel& model, std::span<const std::int32_t> ids) {
  return split_between(model, PairSide::target, ids,
                       [](std::span<const std::string> part) { return words_of(part); });
}

OrderedJson units_json(const std::vector<TextWord>& units) {
  OrderedJson list = OrderedJson::array();
  for (const TextWord& unit : units) {
    list.push_back({{"text", named_bytes(unit.text)}, {"begin", unit.begin}, {"end", unit.end}});
  }
  return list;
}

OrderedJson tokens_json(const LoadedModel& model, std::span<const std::int32_t> ids,
                        PairSide side) {
  OrderedJson tokens = OrderedJson::array();
  for (const std::int32_t id : ids) tokens.push_back(token_json(model, id, side));
  return tokens;
}

}  // namespace heed
