// Values as text.
#pragma once

#include <optional>
#include <string>

#include "chat/runtime.h"
#include "chat/value.h"

namespace heed::chat {

// As Python's str() prints it; nothing for an undefined value.
Text to_text(Runtime& runtime, const Value& value);

// As Python's repr() prints it: strings in quotes.
Text to_repr(Runtime& runtime, const Value& value);

// As markupsafe's escape(): & < > " ' become entities, and the text is HTML. Of what is HTML
// already nothing changes.
Text html_escaped(Runtime& runtime, const Text& text);

std::string real_text(double value);  // 1.0, 1e+16, inf

struct JsonLayout {
  bool ascii = false;  // other characters as \uXXXX
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level; none: all on one line
  std::string item_separator = ", ";  // with an indent: ","
  std::string key_separator = ": ";
};
// As Python's json.dumps() does. Throws for a value that JSON does not have.
Text to_json(Runtime& runtime, const Value& value, const JsonLayout& layout);

}  // namespace heed::chat
