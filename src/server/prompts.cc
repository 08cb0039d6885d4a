#include "server/prompts.h"

#include "server/fields.h"

namespace heed::server {
namespace {

std::vector<std::int32_t> beginning_of_text(const LoadedModel& model, const char* field) {
  const std::optional<std::int32_t> beginning = model.beginning_of_text();
  require_field(beginning.has_value(), field, field_code::invalid_value,
                "{} is empty, and this model has no token that begins a text", field);
  return {*beginning};
}

std::vector<std::int32_t> read_prompt(const Json& prompt, const LoadedModel& model,
                                      const char* field) {
  if (prompt.is_array()) {
    require_field(!prompt.empty(), field, field_code::invalid_value,
                  "{} holds a list without tokens", field);
    return token_ids(prompt, model.transformer.specification().vocabulary_size, field, field);
  }
  require_field(prompt.is_string(), field, field_code::invalid_type,
                "{} must be a string, a list of token ids, or a list of either, not {}", field,
                shown(prompt));
  const auto& text = prompt.get_ref<const std::string&>();
  if (text.empty()) return beginning_of_text(model, field);
  return model.encode(text);
}

}  // namespace

std::vector<std::vector<std::int32_t>> read_prompts(const Json* prompt, const LoadedModel& model,
                                                    const PromptLimits& limits, const char* field) {
  std::vector<std::vector<std::int32_t>> prompts;
  const bool is_list =
      prompt != nullptr && prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
  if (prompt == nullptr) {
    prompts.push_back(beginning_of_text(model, field));
  } else if (!is_list) {
    prompts.push_back(read_prompt(*prompt, model, field));
  } else {
    require_field(prompt->size() <= limits.most, field, field_code::invalid_value,
                  "{} may hold {} texts, not {}", field, limits.most, prompt->size());
    for (const Json& item : *prompt) prompts.push_back(read_prompt(item, model, field));
  }
  for (const auto& tokens : prompts) require_prompt_fits(tokens, limits, field);
  return prompts;
}

void require_prompt_fits(const std::vector<std::int32_t>& tokens, const PromptLimits& limits,
                         const char* field) {
  require_field(std::ssize(tokens) <= limits.tokens, field, field_code::context_length,
                "{} has {} tokens, more than the context of {}; shorten it", field, tokens.size(),
                limits.tokens);
}

}  // namespace heed::server
