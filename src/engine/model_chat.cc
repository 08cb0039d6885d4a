#include "engine/model_chat.h"

#include <locale.h>
#include <time.h>
#include <utility>

#include "chat/chat_template.h"
#include "formats/gguf_files.h"
#include "formats/model_files.h"

namespace heed {
namespace {

// Months and days have their English names, whatever the locale of the process.
std::string formatted_date(const std::string& format) {
  constexpr std::size_t max_date = 1 << 16;  // bytes; a format may name any width
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  const time_t now = ::time(nullptr);
  tm date{};
  ::localtime_r(&now, &date);
  std::string text(max_date, '\0');
  text.resize(::strftime_l(text.data(), text.size(), format.c_str(), &date, plain));
  return text;
}

}  // namespace

std::optional<chat::FoundChatTemplate> find_chat_template(const LoadedModel& model) {
  if (model.directory.empty()) return std::nullopt;
  if (!is_gguf_path(model.directory)) return chat::find_chat_template(model.directory);
  auto found = chat::find_chat_template(read_tokenizer_config(model.directory));
  if (found) found->name = "chat_template of " + model.directory.filename().string();
  return found;
}

std::optional<ModelChat> ModelChat::find(const LoadedModel& model) {
  auto found = find_chat_template(model);
  if (!found) return std::nullopt;
  return ModelChat(found->source, std::move(found->name), std::move(found->special_tokens),
                   found->tool_use);
}

ModelChat::Program::Program(std::string_view source, const std::string& name)
    : chat_template(source, name),
      names_developer(source.find("developer") != std::string_view::npos) {}

ModelChat::ModelChat(std::string_view source, std::string name,
                     std::map<std::string, std::string> special_tokens, std::string_view tool_use)
    : name_(std::move(name)),
      special_tokens_(std::move(special_tokens)),
      program_(std::make_shared<const Program>(source, name_)) {
  if (!tool_use.empty()) tool_program_ = std::make_shared<const Program>(tool_use, name_);
}

const ModelChat::Program& ModelChat::program_for(const ChatPrompt& prompt) const {
  return prompt.tools.empty() || tool_program_ == nullptr ? *program_ : *tool_program_;
}

std::vector<std::int32_t> ModelChat::encode(const ChatPrompt& prompt, const Tokenizer& tokenizer,
                                            StopFlag stop) const {
  const Program& program = program_for(prompt);
  chat::ChatInput input{.messages = prompt.messages,
                        .tools = prompt.tools,
                        .end = prompt.end,
                        .special_tokens = special_tokens_,
                        .variables = prompt.variables,
                        .strftime_now = formatted_date};
  for (OrderedJson& message : input.messages) {
    if (program.names_developer || !message.is_object()) continue;
    const auto role = message.find("role");
    if (role != message.end() && *role == "developer") *role = "system";
  }
  PromptWriter writer(tokenizer);
  for (const chat::ChatPart& part : program.chat_template.render_parts(input, {.stop = stop})) {
    if (part.origin == chat::Origin::chat_template) {
      writer.write_template(part.text);
    } else {
      writer.write_text(part.text);
    }
  }
  return writer.finish();
}

void PromptWriter::write_template(std::string_view text) {
  if (text.empty()) return;
  const std::size_t begin = text_.size();
  text_ += text;
  if (!template_.empty() && template_.back().end == begin) {
    template_.back().end = text_.size();
  } else {
    template_.push_back({begin, text_.size()});
  }
}

std::vector<std::int32_t> PromptWriter::finish() const {
  return tokenizer_.encode(text_, {.special_ranges = template_});
}

}  // namespace heed
