#include "engine/token_json.h"

#include "base/json.h"
#include "generate/text_stream.h"

namespace heed {
namespace {

std::string valid_text(const std::string& bytes) {
  TextStream stream;
  std::string text = stream.push(bytes);
  return text + stream.finish();
}

}  // namespace

std::string token_text(const LoadedModel& model, std::int32_t id) {
  return valid_text(model.token_bytes(id));
}

OrderedJson token_json(std::int32_t id, const std::string& bytes) {
  std::string text = valid_text(bytes);
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
  const std::vector<std::string> bytes = model.token_bytes(ids);
  if (model.tokenizer != nullptr) return units_of(bytes);
  std::vector<TextWord> units;
  for (std::size_t t = 0; t < bytes.size(); ++t) {
    const auto begin = static_cast<std::int64_t>(t);
    units.push_back({bytes[t], begin, begin + 1});
  }
  return units;
}

OrderedJson units_json(const std::vector<TextWord>& units) {
  OrderedJson list = OrderedJson::array();
  for (const TextWord& unit : units) {
    list.push_back({{"text", valid_text(unit.text)}, {"begin", unit.begin}, {"end", unit.end}});
  }
  return list;
}

OrderedJson tokens_json(const LoadedModel& model, std::span<const std::int32_t> ids) {
  OrderedJson tokens = OrderedJson::array();
  for (const std::int32_t id : ids) tokens.push_back(token_json(model, id));
  return tokens;
}

}  // namespace heed
