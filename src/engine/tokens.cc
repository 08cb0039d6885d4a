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
  const Tokenizer& tokenizer = ModelAccess::loaded(model).require_tokenizer();
  const std::optional<std::int32_t> first = tokenizer.beginning_of_text();
  return first ? first : tokenizer.end_of_text();
}

std::optional<std::int32_t> end_token(const Model& model) {
  return ModelAccess::loaded(model).require_tokenizer().end_of_text();
}

}  // namespace heed
