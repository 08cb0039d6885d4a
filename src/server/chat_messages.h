// The "messages" of a chat request.
#pragma once

#include <vector>

#include "server/chat_template.h"
#include "server/fields.h"

namespace heed::server {

// Roles system, developer (the same), user, assistant and tool, with their contents as text: a
// string, or a list of text parts, which are joined. Throws FieldError for anything else.
std::vector<ChatMessage> read_messages(const Fields& fields);

}  // namespace heed::server
