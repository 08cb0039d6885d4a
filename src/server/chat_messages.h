// What a chat request says: its messages, its tools and the variables of the template.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/chat_template.h"
#include "server/fields.h"

namespace heed::server {

struct ChatRequestPrompt {
  ChatPrompt prompt;
  // "messages[1].name": what the chat template, being a pattern, leaves out.
  std::vector<std::string> ignored;
};

// A Jinja template gets everything: messages with all their fields, their contents as text (null
// beside tool calls), "tools", and "chat_template_kwargs" as variables. Patterns get the roles
// system, developer, user, assistant and tool with their contents; tools are refused. Contents are
// strings, or lists of text parts, which are joined. "add_generation_prompt" and
// "continue_final_message" say where the prompt ends. `body` is the JSON text of the fields, whose
// order templates write. Throws FieldError for anything else.
ChatRequestPrompt read_chat_prompt(const Fields& fields, std::string_view body,
                                   const ChatTemplate& chat_template);

}  // namespace heed::server
