// The chat templates of published models: Jinja programs that turn the messages of a conversation
// into the text that the model continues. docs/chat.md lists what of Jinja they may use.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/tokenizer_config.h"
#include "chat/text.h"
#include "chat/value.h"

namespace heed::chat {

// Where the text of a conversation ends.
enum class ChatEnd {
  reply_begun,  // after what begins a reply: the variable add_generation_prompt is true
  turn_ended,   // after the last message
  turn_open,    // within the last message, after its content, which is then continued
};

struct ChatInput {
  OrderedJson messages = OrderedJson::array();  // [{"role": …, "content": …, …}, …]
  OrderedJson tools;                            // null: none
  ChatEnd end = ChatEnd::reply_begun;
  std::map<std::string, std::string> special_tokens;  // by variable: bos_token, eos_token, …
  OrderedJson variables = OrderedJson::object();      // others, such as "enable_thinking"
  // The current date in a format of strftime(), up to max_date_format bytes. Without it
  // templates find no strftime_now.
  std::function<std::string(const std::string& format)> strftime_now;
};

// A stretch of rendered text of one origin. Text of the conversation is content of messages, tools
// and variables; special tokens must not be recognised in it. The roles of messages are the
// template's text if they are usual ones, since some templates make tokens of them: <|user|>.
struct ChatPart {
  std::string text;
  Origin origin = Origin::chat_template;
};

// Immutable; threads may render with one template at the same time.
class ChatTemplate {
 public:
  // Throws Error{corrupt_data} for a template that is not valid, Error{unsupported} for one that
  // needs more of Jinja, and Error{invalid_argument} for one that is too large, with the line.
  explicit ChatTemplate(std::string_view source, std::string name_for_errors);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&& other) noexcept;
  ChatTemplate& operator=(ChatTemplate&& other) noexcept;

  // Throws Error{invalid_argument} for what the template refuses (raise_exception), for an
  // operation that its values do not have, for a last message without content that is to stay open,
  // and for a limit; Error{interrupted} once limits.stop is set; Error{unsupported} as above.
  std::string render(const ChatInput& input, const RenderLimits& limits = {}) const;
  // The same text in parts; no two neighbours have one origin.
  std::vector<ChatPart> render_parts(const ChatInput& input, const RenderLimits& limits = {}) const;

 private:
  struct Program;
  Text rendered(const ChatInput& input, const RenderLimits& limits) const;

  std::string name_;
  std::unique_ptr<const Program> program_;
};

// The chat template that a model directory holds.
struct FoundChatTemplate {
  std::string source;
  std::string name;      // the file's, for messages
  std::string tool_use;  // the template named "tool_use", for requests with tools; may be empty
  std::map<std::string, std::string> special_tokens;  // bos_token, eos_token, …: see ChatInput
};

// Reads chat_template.jinja, else "chat_template" of tokenizer_config.json (a string, or a list of
// {"name", "template"} with one named "default"); nothing if there is neither. Throws
// Error{corrupt_data} for files that are not as they should be.
std::optional<FoundChatTemplate> find_chat_template(const std::filesystem::path& directory);
// That of tokenizer_config.json alone.
std::optional<FoundChatTemplate> find_chat_template(const TokenizerConfig& config);

}  // namespace heed::chat
