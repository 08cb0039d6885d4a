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

OrderedJson tokens_json(const LoadedModel& model, std::span<const std::int32_t> ids) {
  OrderedJson tokens = OrderedJson::array();
  for (const std::int32_t id : ids) tokens.push_back(token_json(model, id));
  return tokens;
}

}  // namespace heed
