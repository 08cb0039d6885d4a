#include "server/chat_template.h"

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "engine/loaded_model.h"
#include "engine/starter.h"
#include "model/gpt_files.h"
#include "server/field_error.h"
#include "server/fields.h"

namespace heed::server {
namespace {

constexpr std::string_view content_mark = "{content}";
constexpr std::size_t largest_file = 16 << 20;  // bytes; published ones have up to a few million
constexpr std::size_t most_template_stops = 16;

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

// Encodes text and special tokens in order.
class TokenWriter {
 public:
  explicit TokenWriter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void write_text(std::string_view text) { text_ += text; }

  void write_template(std::string_view text) {
    while (!text.empty()) {
      const auto [begin, token] = next_special(text);
      text_ += text.substr(0, begin);
      if (token == nullptr) return;
      flush();
      tokens_.push_back(token->id);
      text.remove_prefix(begin + token->content.size());
    }
  }

  std::vector<std::int32_t> finish() {
    flush();
    return std::move(tokens_);
  }

 private:
  struct Special {
    std::size_t begin = 0;
    const AddedToken* token = nullptr;  // none: `begin` is the end of the text
  };

  // The first special token in `text`, the longest of those that begin there.
  Special next_special(std::string_view text) const {
    Special first{text.size(), nullptr};
    for (const AddedToken& token : tokenizer_.added_tokens()) {
      if (!token.special) continue;
      const std::size_t begin = text.find(token.content);
      if (begin == std::string_view::npos) continue;
      const bool longer = first.token != nullptr && begin == first.begin &&
                          token.content.size() > first.token->content.size();
      if (begin < first.begin || longer) first = {begin, &token};
    }
    return first;
  }

  void flush() {
    const auto ids = tokenizer_.encode(text_, {.special_tokens = false});
    tokens_.insert(tokens_.end(), ids.begin(), ids.end());
    text_.clear();
  }

  const Tokenizer& tokenizer_;
  std::string text_;  // not yet encoded
  std::vector<std::int32_t> tokens_;
};

// The model's own template, in Jinja: chat_template.jinja, or "chat_template" of
// tokenizer_config.json, which is a string or a list of named ones.
std::optional<std::string> published_template(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "chat_template.jinja";
  if (std::filesystem::is_regular_file(file)) return read_text_file(file, largest_file);
  const std::filesystem::path config = directory / "tokenizer_config.json";
  if (!std::filesystem::is_regular_file(config)) return std::nullopt;
  const Json json = parse_json(read_text_file(config, largest_file), config.string());
  if (!json.is_object() || !json.contains("chat_template")) return std::nullopt;
  const Json& found = json["chat_template"];
  if (found.is_string()) return found.get<std::string>();
  if (!found.is_array()) return std::nullopt;
  for (const Json& named : found) {
    if (!named.is_object() || named.value("name", Json()) != "default") continue;
    const Json text = named.value("template", Json());
    if (text.is_string()) return text.get<std::string>();
  }
  return std::nullopt;
}

bool is_chatml(std::string_view jinja) {
  return jinja.find("<|im_start|>") != std::string_view::npos &&
         jinja.find("<|im_end|>") != std::string_view::npos;
}

ChosenTemplate template_of_model(const std::string& model) {
  ChosenTemplate chosen{ChatTemplate::built_in("plain"), ""};
  if (model == starter_name) return chosen;
  try {
    const auto published = published_template(model_directory(model_path(model)));
    if (!published) return chosen;
    if (is_chatml(*published)) return {ChatTemplate::built_in("chatml"), ""};
    chosen.warning =
        "the model's own chat template cannot be applied (it is a Jinja program); chats use "
        "'plain', or what --chat-template names";
  } catch (const Error& error) {
    chosen.warning = fmt::format(
        "the model's chat template cannot be read ({}); chats use 'plain', or what "
        "--chat-template names",
        error.what());
  }
  return chosen;
}

}  // namespace

ChatTemplate ChatTemplate::built_in(const std::string& name) {
  const char* const json = built_in_json(name);
  require(json != nullptr, ErrorCode::not_found,
          "there is no chat template '{}'; choose 'plain' or 'chatml', or name a file", name);
  return from_json(parse_json(json, name), name);
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
  made.stop_strings_ = fields.strings("stop", most_template_stops);
  for (const std::string& stop : made.stop_strings_) {
    require_field(!stop.empty(), "stop", field_code::invalid_value,
                  "stop of chat template '{}' holds an empty string", name);
  }
  return made;
}

const ChatTemplate::Pattern& ChatTemplate::pattern_of(ChatRole role) const {
  switch (role) {
    case ChatRole::system: return system_;
    case ChatRole::user: return user_;
    case ChatRole::assistant: return assistant_;
    case ChatRole::tool: return tool_;
  }
  return user_;
}

std::vector<std::int32_t> ChatTemplate::encode(const std::vector<ChatMessage>& messages,
                                               const Tokenizer& tokenizer) const {
  TokenWriter writer(tokenizer);
  for (const ChatMessage& message : messages) {
    const Pattern& pattern = pattern_of(message.role);
    writer.write_template(pattern.before);
    writer.write_text(message.content);
    writer.write_template(pattern.after);
  }
  writer.write_template(reply_);
  return writer.finish();
}

ChosenTemplate choose_chat_template(const std::string& wanted, const std::string& model) {
  if (wanted.empty()) return template_of_model(model);
  if (built_in_json(wanted) != nullptr) return {ChatTemplate::built_in(wanted), ""};
  require(std::filesystem::is_regular_file(wanted), ErrorCode::not_found,
          "--chat-template '{}' is neither a built-in template (plain, chatml) nor a file", wanted);
  const std::string name = std::filesystem::path(wanted).filename().string();
  return {ChatTemplate::from_json(parse_json(read_text_file(wanted, largest_file), wanted), name),
          ""};
}

}  // namespace heed::server
