#include "engine/model_chat.h"

#include <array>
#include <ctime>
#include <utility>

#include "chat/find_chat_template.h"
#include "engine/prompt_writer.h"

namespace heed {
namespace {

std::string formatted_date(const std::string& format) {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  localtime_r(&now, &date);
  std::array<char, 256> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format.c_str(), &date)};
}

}  // namespace

std::optional<ModelChat> ModelChat::find(const LoadedModel& model) {
  if (model.directory.empty()) return std::nullopt;
  auto found = chat::find_chat_template(model.directory);
  if (!found) return std::nullopt;
  return ModelChat(found->source, std::move(found->name), std::move(found->special_tokens));
}

ModelChat::ModelChat(std::string_view source, std::string name,
                     std::map<std::string, std::string> special_tokens)
    : name_(std::move(name)),
      special_tokens_(std::move(special_tokens)),
      template_(std::make_shared<const chat::ChatTemplate>(source, name_)) {}

std::vector<std::int32_t> ModelChat::encode(const OrderedJson& messages,
                                            const Tokenizer& tokenizer) const {
  PromptWriter writer(tokenizer);
  for (const chat::ChatPart& part : template_->render_parts({.messages = messages,
                                    .special_tokens = special_tokens_,
                                    .strftime_now = formatted_date})) {
    if (part.origin == chat::Origin::chat_template) {
      writer.write_template(part.text);
    } else {
      writer.write_text(part.text);
    }
  }
  return writer.finish();
}

}  // namespace heed
