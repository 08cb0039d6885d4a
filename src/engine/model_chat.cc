#include "engine/model_chat.h"

#include <locale.h>
#include <time.h>

#include <array>
#include <utility>

#include "chat/find_chat_template.h"
#include "engine/prompt_writer.h"

namespace heed {
namespace {

// Months and days have their English names, whatever the locale of the process.
std::string formatted_date(const std::string& format) {
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  const time_t now = ::time(nullptr);
  tm date{};
  ::localtime_r(&now, &date);
  std::array<char, 256> text{};
  return {text.data(), ::strftime_l(text.data(), text.size(), format.c_str(), &date, plain)};
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
