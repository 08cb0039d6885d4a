#include "server/chat_messages.h"

#include "server/field_error.h"

namespace heed::server {
namespace {

constexpr std::size_t most_messages = 4096;

ChatRole read_role(const Fields& message) {
  const std::string role = message.required_string("role");
  if (role == "system" || role == "developer") return ChatRole::system;
  if (role == "user") return ChatRole::user;
  if (role == "assistant") return ChatRole::assistant;
  require_field(role == "tool", message.path("role"), field_code::invalid_value,
                "role must be system, developer, user, assistant or tool, not \"{}\"",
                role.substr(0, 40));
  return ChatRole::tool;
}

std::string read_parts(const Json& parts, const std::string& path) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part_path = fmt::format("{}[{}]", path, i);
    const Fields part(parts[i], part_path, part_path);
    const std::string type = part.required_string("type");
    require_field(type == "text", part.path("type"), field_code::unsupported,
                  "{} is of type \"{}\"; this model takes text only", part_path,
                  type.substr(0, 40));
    text += part.required_string("text");
  }
  return text;
}

std::string read_content(const Fields& message, ChatRole role) {
  const Json* const content = message.find("content");
  if (content == nullptr && role == ChatRole::assistant) return "";
  if (content != nullptr && content->is_array()) {
    return read_parts(*content, message.path("content"));
  }
  return message.required_string("content");
}

void refuse_calls(const Fields& message) {
  for (const char* name : {"tool_calls", "function_call"}) {
    const Json* const calls = message.find(name);
    require_field(calls == nullptr || calls->empty(), message.path(name), field_code::unsupported,
                  "{} are not supported: give their text as content", name);
  }
}

}  // namespace

std::vector<ChatMessage> read_messages(const Fields& fields) {
  const Json& list = fields.required_list("messages");
  require_field(!list.empty() && list.size() <= most_messages, fields.path("messages"),
                field_code::invalid_value, "messages must hold 1 to {} messages, not {}",
                most_messages, list.size());
  std::vector<ChatMessage> messages;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    const Fields message(list[i], path, path);
    refuse_calls(message);
    const ChatRole role = read_role(message);
    messages.push_back({role, read_content(message, role)});
  }
  return messages;
}

}  // namespace heed::server
