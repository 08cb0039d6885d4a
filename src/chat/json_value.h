// JSON of a conversation as values of a template.
#pragma once

#include "base/json.h"
#include "chat/runtime.h"
#include "chat/value.h"

namespace heed::chat {

// Texts have the origin `conversation`. Throws Error{invalid_argument} for numbers beyond 64 bits
// and for values that nest too deep.
Value json_value(Runtime& runtime, const OrderedJson& json);

// The same, but the usual roles are the template's own text.
Value messages_value(Runtime& runtime, const OrderedJson& messages);

// Puts an end mark behind the content of the last message: a letter and a space, which a template
// that strips contents takes away. Throws Error{invalid_argument} if there is no content.
void mark_last_content(Runtime& runtime, const Value& messages);

}  // namespace heed::chat
