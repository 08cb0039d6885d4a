// Tokens of the public facade.
#include "heed/tokens.h"

#include "engine/model_parts.h"

namespace heed {

std::vector<std::int32_t> prompt_tokens(const Model& model, std::string_view text) {
  return ModelAccess::loaded(model).encode(text);
}

std::vector<std::int32_t> part_tokens(const Model& model, std::string_view text) {
  return ModelAccess::loaded(model).encode_part(text);
}

std::vector<std::string> token_texts(const Model& model, std::span<const std::int32_t> tokens) {
  return ModelAccess::loaded(model).token_bytes(tokens);
}

std::optional<std::int32_t> beginning_token(const Model& model) {
  const LoadedModel& loaded = ModelAccess::loaded(model);
  loaded.require_tokenizer();
  return loaded.beginning_of_text();
}

std::optional<std::int32_t> end_token(const Model& model) {
  const LoadedModel& loaded = ModelAccess::loaded(model);
  const std::optional<std::int32_t> usual = loaded.require_tokenizer().end_of_text();
  const std::int64_t own = loaded.gpt.specification().end_of_text;
  return own >= 0 ? static_cast<std::int32_t>(own) : usual;
}

}  // namespace heed
