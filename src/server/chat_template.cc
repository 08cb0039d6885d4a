#include "server/chat_template.h"

#include <filesystem>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "chat/chat_template.h"
#include "chat/value.h"
#include "engine/model_chat.h"
#include "server/fields.h"

namespace heed::server {
namespace {

constexpr std::string_view content_mark = "{content}";
constexpr std::size_t max_file = 16 << 20;  // bytes; published ones have up to a few million
constexpr std::size_t max_template_stops = 16;

// Base models know dialogues from books and web pages: names, colons and line breaks.
constexpr const char* plain_json = R"({
  "system": "{content}\n\n",
  "user": "User: {content}\n",
  "assistant": "Assistant: {content}\n",
  "reply": "Assistant:",
  "stop": ["\nUser:", "\nAssistant:"]
})";

constexpr const char* chatml_json = R"({
  "system": "<|im_start|>system\n{content}<|im_end|>\n",
  "user": "<|im_start|>user\n{content}<|im_end|>\n",
  "assistant": "<|im_start|>assistant\n{content}<|im_end|>\n",
  "tool": "<|im_start|>tool\n{content}<|im_end|>\n",
  "reply": "<|im_start|>assistant\n",
  "stop": ["<|im_end|>", "<|im_start|>"]
})";

const char* built_in_json(const std::string& name) {
  if (name == "plain") return plain_json;
  if (name == "chatml") return chatml_json;
  return nullptr;
}

bool is_chatml(std::string_view jinja) {
  return jinja.find("<|im_start|>") != std::string_view::npos &&
         jinja.find("<|im_end|>") != std::string_view::npos;
}

// What a model gets whose own template, if it could be read, is not run.
ChosenTemplate template_instead(std::string_view jinja, const Error& error) {
  if (is_chatml(jinja)) return {ChatTemplate::built_in("chatml"), ""};
  return {
      ChatTemplate::built_in("plain"),
      fmt::format("the model's chat template cannot be applied ({}); chats use 'plain', or what "
                  "--chat-template names",
                  error.what())};
}

ChosenTemplate template_of_model(const LoadedModel& model) {
  std::string jinja;
  try {
    auto found = find_chat_template(model);
    if (!found) return {ChatTemplate::built_in("plain"), ""};
    jinja = found->source;
    return {ChatTemplate::from_jinja(ModelChat(jinja, std::move(found->name),
                                               std::move(found->special_tokens), found->tool_use)),
            ""};
  } catch (const Error& error) {
    return template_instead(jinja, error);
  }
}

// The special tokens that it may name are those of the template that it replaces.
ModelChat jinja_file(const std::string& file, const std::string& name, const LoadedModel& model) {
  std::map<std::string, std::string> special_tokens;
  if (auto own = find_chat_template(model)) special_tokens = std::move(own->special_tokens);
  return {read_text_file(file, chat::max_template), name, std::move(special_tokens)};
}

}  // namespace

ChatTemplate ChatTemplate::built_in(const std::string& name) {
  const char* const json = built_in_json(name);
  require(json != nullptr, ErrorCode::not_found,
          "there is no chat template '{}'; choose 'plain' or 'chatml', or name a file", name);
  return from_json(parse_json(json, name), name);
}

ChatTemplate ChatTemplate::from_jinja(ModelChat chat) {
  ChatTemplate made;
  made.name_ = chat.name();
  made.jinja_ = std::move(chat);
  return made;
}

ChatTemplate ChatTemplate::from_json(const Json& json, const std::string& name) {
  const Fields fields(json, fmt::format("chat template '{}'", name));
  fields.expect_only({"system", "user", "assistant", "tool", "reply", "stop"});
  const auto pattern = [&](const char* role) {
    const std::string text = fields.required_string(role);
    const std::size_t begin = text.find(content_mark);
    require_field(
        begin != std::string::npos && text.find(content_mark, begin + 1) == std::string::npos, role,
        field_code::invalid_value, "{} of chat template '{}' must hold {} once", role, name,
        content_mark);
    return Pattern{text.substr(0, begin), text.substr(begin + content_mark.size())};
  };
  ChatTemplate made;
  made.name_ = name;
  made.system_ = pattern("system");
  made.user_ = pattern("user");
  made.assistant_ = pattern("assistant");
  made.tool_ = fields.has("tool") ? pattern("tool") : made.user_;
  made.reply_ = fields.required_string("reply");
  made.stop_strings_ = fields.strings("stop", max_template_stops);
  for (const std::string& stop : made.stop_strings_) {
    require_field(!stop.empty(), "stop", field_code::invalid_value,
                  "stop of chat template '{}' holds an empty string", name);
  }
  return made;
}

const ChatTemplate::Pattern& ChatTemplate::pattern_of(const OrderedJson& message) const {
  const auto& role = message.at("role").get_ref<const std::string&>();
  if (role == "system" || role == "developer") return system_;
  if (role == "assistant") return assistant_;
  return role == "tool" ? tool_ : user_;
}

std::vector<std::int32_t> ChatTemplate::encode(const ChatPrompt& prompt, const Tokenizer& tokenizer,
                                               StopFlag stop) const {
  if (jinja_) return jinja_->encode(prompt, tokenizer, stop);
  PromptWriter writer(tokenizer);
  for (std::size_t i = 0; i < prompt.messages.size(); ++i) {
    const OrderedJson& message = prompt.messages[i];
    const Pattern& pattern = pattern_of(message);
    const bool stays_open =
        prompt.end == chat::ChatEnd::turn_open && i + 1 == prompt.messages.size();
    writer.write_template(pattern.before);
    writer.write_text(message.at("content").get_ref<const std::string&>());
    if (!stays_open) writer.write_template(pattern.after);
  }
  if (prompt.end == chat::ChatEnd::reply_begun) writer.write_template(reply_);
  return writer.finish();
}

ChosenTemplate choose_chat_template(const std::string& wanted, const LoadedModel& model) {
  if (wanted.empty()) return template_of_model(model);
  if (built_in_json(wanted) != nullptr) return {ChatTemplate::built_in(wanted), ""};
  require(std::filesystem::is_regular_file(wanted), ErrorCode::not_found,
          "--chat-template '{}' is neither a built-in template (plain, chatml) nor a file", wanted);
  const std::string name = std::filesystem::path(wanted).filename().string();
  if (name.ends_with(".jinja")) {
    return {ChatTemplate::from_jinja(jinja_file(wanted, name, model)), ""};
  }
  return {ChatTemplate::from_json(parse_json(read_text_file(wanted, max_file), wanted), name), ""};
}

}  // namespace heed::server
