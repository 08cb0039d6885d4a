#include "server/prompts.h"

#include "base/error.h"
#include "server/fields.h"

namespace heed::server {
namespace {

std::vector<std::int32_t> beginning_of_text(const LoadedModel& model, const char* name) {
  const std::int64_t of_model = model.gpt.config().end_of_text;
  if (of_model >= 0) return {static_cast<std::int32_t>(of_model)};
  const bool has = model.tokenizer != nullptr && model.tokenizer->end_of_text().has_value();
  require(has, ErrorCode::invalid_argument,
          "{} is empty, and this model has no token that begins a text", name);
  return {*model.tokenizer->end_of_text()};
}

std::vector<std::int32_t> read_prompt(const Json& prompt, const LoadedModel& model,
                                      const char* name) {
  if (prompt.is_array()) {
    require(!prompt.empty(), ErrorCode::invalid_argument, "{} holds a list without tokens", name);
    return token_ids(prompt, model.gpt.config().vocabulary_size, name);
  }
  require(prompt.is_string(), ErrorCode::invalid_argument,
          "{} must be a string, a list of token ids, or a list of either, not {}", name,
          shown(prompt));
  const auto& text = prompt.get_ref<const std::string&>();
  if (text.empty()) return beginning_of_text(model, name);
  return model.encode(text);
}

}  // namespace

std::vector<std::vector<std::int32_t>> read_prompts(const Json* prompt, const LoadedModel& model,
                                                    const PromptLimits& limits, const char* name) {
  std::vector<std::vector<std::int32_t>> prompts;
  const bool is_list =
      prompt != nullptr && prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
  if (prompt == nullptr) {
    prompts.push_back(beginning_of_text(model, name));
  } else if (!is_list) {
    prompts.push_back(read_prompt(*prompt, model, name));
  } else {
    require(prompt->size() <= limits.most, ErrorCode::invalid_argument,
            "{} may hold {} texts, not {}", name, limits.most, prompt->size());
    for (const Json& item : *prompt) prompts.push_back(read_prompt(item, model, name));
  }
  for (const auto& tokens : prompts) {
    require(std::ssize(tokens) <= limits.tokens, ErrorCode::invalid_argument,
            "{} has {} tokens, more than the {} that this server reads", name, tokens.size(),
            limits.tokens);
  }
  return prompts;
}

void check_model_name(const Json& body, const std::string& name) {
  const auto asked = Fields(body).string("model");
  require(!asked || *asked == name, ErrorCode::not_found, "there is no model '{}' here, only '{}'",
          asked.value_or("").substr(0, 100), name);
}

}  // namespace heed::server
